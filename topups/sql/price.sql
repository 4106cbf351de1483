-- The numbers of the targets that a top-up product belongs to (PriceListEntry in catalogue/models.py).
CREATE OR REPLACE FUNCTION topups_targets(product bigint, category bigint)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY[product * 8 + 3, category * 8 + 1, 0]
$$;

-- The price of a top-up product for one merchant at a time; NULL if it cannot buy: its list leaves the
-- product out, or its wallet has another currency. The only place that decides it: lists, details
-- and the purchase call it. Works like catalogue_price (catalogue/sql/price.sql).
CREATE OR REPLACE FUNCTION topups_price(
    account_currency text, price_list bigint, product bigint, category bigint,
    currency text, price numeric, next_price numeric, next_price_from timestamptz, at timestamptz
) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN account_currency <> currency THEN NULL
        WHEN price_list IS NULL
            THEN catalogue_regular_price(price, next_price, next_price_from, at)
        ELSE catalogue_listed_price(
            price_list, topups_targets(product, category),
            catalogue_regular_price(price, next_price, next_price_from, at), currency, at)
    END
$$;
