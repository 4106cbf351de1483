-- Decides whether a top-up product is on sale: it is active, published, delivered by our operators
-- (no external provider), and its category is active (contract, "Catalogue visibility rules"). A
-- NULL category_active means that there is no category. The only place with this rule.
--
-- The lists, the check of the fields and the purchase all call it. PostgreSQL inlines it into the
-- calling query, so it costs no function call.
CREATE OR REPLACE FUNCTION topups_is_on_sale(
    active boolean, published boolean, external_provider text, category_active boolean
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT active AND published AND external_provider IS NULL AND coalesce(category_active, true)
$$;
