-- Takes the next code of a shelf for an order at no price, which replaces a code of another order of
-- the same client. Returns the digests of its codes, as a purchase does.
--
-- p_keys and p_secret are those of a purchase (purchase_vouchers.sql). The order counts towards no
-- spending limit. Whether the product is on sale and has a price does not matter: the merchant has
-- paid for the code that does not work. Refuses with VT001 insufficient_stock or
-- client_without_wallet.
--
-- The caller holds the case. Lock order: shelf and its codes, wallet, client counter.
CREATE OR REPLACE FUNCTION orders_replace_code(
    p_case bigint, p_reference text, p_client bigint, p_account bigint, p_shelf bigint,
    p_currency text, p_keys bytea, p_secret bytea, p_actor text, p_note text,
    OUT created_at timestamptz, OUT digests bytea[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    taken record;
    new_order bigint := nextval('orders_order_id_seq');
    order_number bigint;
BEGIN
    PERFORM set_config('enable_seqscan', 'off', true);  -- as in purchase_vouchers.sql

    taken := catalogue_take_codes(p_shelf, 1, new_order, p_keys);
    digests := taken.digests;

    PERFORM wallets_record_replacement(p_account, p_reference, p_case, p_actor, p_note);

    UPDATE orders_clientcounter SET orders = orders + 1 WHERE client_id = p_client
    RETURNING orders INTO order_number;

    created_at := clock_timestamp();  -- under the counter's lock, as in add.sql
    INSERT INTO orders_order
        (id, reference, client_id, number, shelf_id, quantity, units_per_sale, unit_price,
         total_price, currency, codes_mac, case_id, created_at)
    VALUES
        (new_order, p_reference, p_client, order_number, p_shelf, 1, 1, 0, 0, p_currency,
         sha256(p_secret || taken.all_digests), p_case, created_at);
END $$;
