-- Buys one top-up (contract, "Top-up purchase body"): one call, one transaction, one durable
-- commit. Works like purchase_vouchers.sql, with a fulfilment instead of codes.
--
-- p_fields are the field values that topups/fields.py has checked.
--
-- Lock order: idempotency record, top-up product (if its stock is counted), wallet, client counter.
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
    -- A role or database may have synchronous_commit off. A crash could then lose a purchase that
    -- the client was already told about.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    -- Never keep a plan that reads a whole table because the table was small. Set until commit,
    -- where the foreign keys are checked (docs/performance.md).
    PERFORM set_config('enable_seqscan', 'off', true);

    -- Refuses if another attempt has taken the key over.
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
        unit_price, unit_price, currency, NULL
    );
END $$;
