-- Buys voucher codes (contract, "Voucher purchase body"): one call, one transaction, one durable
-- commit.
--
-- A refusal raises VT001 with its reason and rolls everything back. The steps run in the order in
-- which refusals must be answered (docs/architecture.md, "A purchase").
--
-- p_keys holds the ids of the encryption keys that the caller has (catalogue/sql/take_codes.sql).
-- p_secret is a secret that only this order has. Hashed with the digests of the codes, it becomes
-- the order's codes_mac: without the secret nobody can make one for other codes (orders/codes.py).
--
-- Lock order: idempotency record, shelf and its codes, wallet, client counter.
CREATE OR REPLACE FUNCTION orders_purchase_vouchers(
    p_record bigint, p_attempt integer, p_reference text, p_client bigint, p_account bigint,
    p_product bigint, p_variation bigint, p_merchant_reference text, p_quantity integer,
    p_keys bytea, p_secret bytea,
    OUT product_id bigint, OUT variation_id bigint, OUT merchant_reference text,
    OUT units_per_sale integer, OUT unit_price numeric, OUT total_price numeric,
    OUT currency text, OUT created_at timestamptz, OUT sealed_codes bytea[],
    OUT digests bytea[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    offer record;
    taken record;
    new_order bigint;
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

    -- Find the shelf and its price.
    offer := catalogue_offer(p_account, p_product, p_variation, p_merchant_reference, p_quantity);
    product_id := offer.product_id;
    variation_id := offer.variation_id;
    merchant_reference := offer.merchant_reference;
    units_per_sale := offer.quantity_step;
    unit_price := offer.unit_price;
    total_price := offer.unit_price * (p_quantity / offer.quantity_step);
    currency := offer.currency;

    PERFORM wallets_require(p_account);
    new_order := nextval('orders_order_id_seq');
    taken := catalogue_take_codes(offer.shelf_id, p_quantity, new_order, p_keys);
    sealed_codes := taken.sealed_codes;
    digests := taken.digests;

    PERFORM wallets_debit(p_account, total_price, p_reference, 'client:' || p_client);

    created_at := orders_add(
        new_order, p_reference, p_client, offer.shelf_id, NULL, p_quantity, offer.quantity_step,
        unit_price, total_price, currency, sha256(p_secret || taken.all_digests)
    );
END $$;
