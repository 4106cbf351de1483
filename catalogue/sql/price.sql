-- The number of decimals of a currency (ISO 4217).
CREATE OR REPLACE FUNCTION catalogue_decimals(currency text)
RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN currency IN ('BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF',
                          'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF') THEN 0
        WHEN currency IN ('BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND') THEN 3
        ELSE 2
    END
$$;

-- A price with percent off, rounded half up to the decimals of the currency, or to those of the
-- price if it has more. The result is never zero, and never more than the price. NULL stays NULL.
CREATE OR REPLACE FUNCTION catalogue_discounted(price numeric, percent_off numeric, currency text)
RETURNS numeric LANGUAGE plpgsql STRICT IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    decimals integer := greatest(catalogue_decimals(currency), min_scale(price));
BEGIN
    RETURN greatest(round(price * (100 - percent_off) / 100, decimals),
                    round(10::numeric ^ -decimals, decimals));
END $$;

-- What a price list says of the most specific of these targets at a time; a row of NULLs if it says
-- nothing. Where several entries hold, the one with the largest kind counts: a shelf, then a
-- top-up product or product, then a category, then all (PriceListEntry in catalogue/models.py).
CREATE OR REPLACE FUNCTION catalogue_entry_of(
    p_list bigint, p_targets bigint[], p_at timestamptz,
    OUT valid_from timestamptz, OUT for_sale boolean, OUT price numeric, OUT percent_off numeric
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan  -- docs/performance.md
AS $$
BEGIN
    SELECT entry.valid_from, entry.for_sale, entry.price, entry.percent_off
      INTO valid_from, for_sale, price, percent_off
      FROM catalogue_pricelistentry AS entry
     WHERE entry.price_list_id = p_list AND entry.target = ANY (p_targets)
       AND entry.valid_from <= p_at AND (entry.valid_until IS NULL OR entry.valid_until > p_at)
     ORDER BY entry.target & 7 DESC
     LIMIT 1;
END $$;

-- The price of these targets in a price list; NULL if nothing is sold at a price.
CREATE OR REPLACE FUNCTION catalogue_listed_price(
    p_list bigint, p_targets bigint[], p_regular numeric, p_currency text, p_at timestamptz
) RETURNS numeric LANGUAGE plpgsql STABLE AS $$
DECLARE
    entry record := catalogue_entry_of(p_list, p_targets, p_at);
BEGIN
    RETURN CASE
        WHEN NOT entry.for_sale THEN NULL
        WHEN entry.percent_off IS NOT NULL
            THEN catalogue_discounted(p_regular, entry.percent_off, p_currency)
        ELSE coalesce(entry.price, p_regular)
    END;
END $$;

-- The numbers of the targets that a shelf belongs to.
CREATE OR REPLACE FUNCTION catalogue_targets(shelf bigint, product bigint, category bigint)
RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY[shelf * 8 + 4, product * 8 + 2, category * 8 + 1, 0]
$$;

-- The price of a shelf for one merchant at a time; NULL if it cannot buy: the shelf has no price,
-- its list leaves it out, or its wallet has another currency. The only place that decides it:
-- lists, details and the purchase call it. An account without a list costs no look-up, and one with
-- a list costs one. PostgreSQL inlines the function.
CREATE OR REPLACE FUNCTION catalogue_price(
    account_currency text, price_list bigint, shelf bigint, product bigint, category bigint,
    currency text, price numeric, next_price numeric, next_price_from timestamptz, at timestamptz
) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN account_currency <> currency THEN NULL
        WHEN price_list IS NULL
            THEN catalogue_regular_price(price, next_price, next_price_from, at)
        ELSE catalogue_listed_price(
            price_list, catalogue_targets(shelf, product, category),
            catalogue_regular_price(price, next_price, next_price_from, at), currency, at)
    END
$$;
