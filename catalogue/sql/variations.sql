-- Whether a product has nothing to sell on its own shelf, and something on one of an active variation.
-- A refused purchase asks, to say so. The product is on sale.
CREATE OR REPLACE FUNCTION catalogue_sells_by_variations(p_product bigint, OUT answer boolean)
LANGUAGE sql STABLE
SET enable_seqscan = off  -- docs/performance.md
AS $$
    SELECT coalesce(bool_or(variation.active)
                    AND bool_and(shelf.variation_id IS NOT NULL), false)
      FROM catalogue_shelf AS shelf
      LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
     WHERE shelf.product_id = p_product AND available_stock > 0 AND price IS NOT NULL;
$$;
