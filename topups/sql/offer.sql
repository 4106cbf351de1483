-- Returns the merchant's price of a top-up product.
-- Refuses with VT001, in this order: product_unknown, product_inactive, price_unavailable, then the
-- other reasons of topups_obstacle.
--
-- A product whose stock is counted is locked before it is read: its purchases run one at a time
-- anyway. A purchase that waited uses the price and state that were committed in the meantime
-- (docs/decisions/0018-price-under-the-shelf-lock.md). A product whose stock is not counted is not
-- locked.
CREATE OR REPLACE FUNCTION topups_offer(
    p_account bigint, p_product bigint, OUT price numeric, OUT currency text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    on_sale boolean;
    obstacle text;
    at timestamptz;
BEGIN
    PERFORM 1 FROM topups_topupproduct
      WHERE id = p_product AND available_stock IS NOT NULL
        FOR NO KEY UPDATE;

    at := clock_timestamp();  -- after the wait for the product
    SELECT topups_price(
               account.currency, account.price_list_id, product.id, product.category_id,
               product.currency, product.price, product.next_price, product.next_price_from, at),
           product.currency,
           topups_obstacle(product.id, product.currency, p_account),
           topups_is_on_sale(
               product.active, product.published, product.external_provider, category.active)
      INTO price, currency, obstacle, on_sale
      FROM topups_topupproduct product
      LEFT JOIN catalogue_category category ON category.id = product.category_id
      LEFT JOIN accounts_account account ON account.id = p_account
     WHERE product.id = p_product;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_unknown';
    END IF;
    IF NOT on_sale THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_inactive';
    END IF;
    IF price IS NULL THEN
        obstacle := 'price_unavailable';
    END IF;
    IF obstacle IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = obstacle;
    END IF;
END $$;
