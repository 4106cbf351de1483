-- Whether an account could buy nothing from a product's own shelf, and something from one of an active
-- variation, at the prices of its price list. A refused purchase asks, to say so. The product is on
-- sale.
CREATE OR REPLACE FUNCTION catalogue_sells_by_variations(
    p_account bigint, p_product bigint, OUT answer boolean
)
LANGUAGE sql STABLE
SET enable_seqscan = off  -- docs/performance.md
AS $$
    SELECT coalesce(bool_or(variation.active)
                    AND bool_and(shelf.variation_id IS NOT NULL), false)
      FROM catalogue_shelf AS shelf
      JOIN catalogue_product AS product ON product.id = shelf.product_id
      JOIN accounts_account AS account ON account.id = p_account
      LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
     WHERE shelf.product_id = p_product AND available_stock > 0
       AND catalogue_price(
               account.currency, account.price_list_id, shelf.id, product.id, product.category_id,
               product.currency, shelf.price, shelf.next_price, shelf.next_price_from,
               clock_timestamp()) IS NOT NULL;
$$;
