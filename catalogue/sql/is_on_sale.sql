-- Decides whether a voucher product or variation is on sale: the product, its category and the
-- variation are all active (contract, "Catalogue visibility rules"). NULL means that there is no
-- category, or no variation. The only place with this rule.
--
-- The catalogue's lists, the purchase and the merchant site all call it. PostgreSQL inlines it into
-- the calling query, so it costs no function call.
CREATE OR REPLACE FUNCTION catalogue_is_on_sale(
    product_active boolean, category_active boolean, variation_active boolean
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT product_active AND coalesce(category_active, true) AND coalesce(variation_active, true)
$$;
