-- One top-up purchase: one call, one transaction, one durable commit; the twin of
-- purchase_vouchers.sql, with a package and a fulfilment in place of codes.
--
-- Locks in the same order: idempotency record, package stock, wallet, client counter.
CREATE OR REPLACE FUNCTION orders_purchase_topup(
    p_record bigint, p_attempt integer, p_reference text, p_client bigint, p_account bigint,
    p_product bigint, p_player_id text, p_fields jsonb,
    OUT fulfilment_id bigint, OUT unit_price numeric, OUT currency text, OUT created_at timestamptz
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    offer record;
    takes_stock boolean;
BEGIN
    -- A role or database that commits without waiting for the disk would lose what we acknowledge.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    -- A plan made while a table is small is kept when it has grown. Until commit, so that it holds
    -- for the plans of foreign keys that are made there (docs/performance.md, "The young table").
    PERFORM set_config('enable_seqscan', 'off', true);

    -- The attempt is still ours, or nothing below may happen.
    PERFORM idempotency_stamp(p_record, p_attempt, p_reference);

    offer := topups_offer(p_account, p_product);
    unit_price := offer.price;
    currency := offer.currency;

    PERFORM wallets_require(p_account);
    takes_stock := topups_take_stock(p_product);
    PERFORM wallets_debit(p_account, unit_price, p_reference, 'client:' || p_client);

    fulfilment_id := topups_open_fulfilment(
        p_reference, p_account, p_client, p_product, p_player_id, p_fields, unit_price, currency,
        takes_stock
    );
    created_at := orders_add(
        nextval('orders_order_id_seq'), p_reference, p_client, NULL, fulfilment_id, 1, 1,
        unit_price, unit_price, currency
    );
END $$;
