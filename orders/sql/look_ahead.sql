-- Find the key of a request together with the answer that it may get (orders/look_ahead.py).
--
-- Both only read, and look nothing up unless p_digest is the digest of the whole key: the prefix of
-- a key is no secret. The columns from digest to is_only_client are those of accounts_find_key; the
-- others are NULL if there is no answer.

-- The stored success of a client and its idempotency key; response is NULL for any other record.
CREATE OR REPLACE FUNCTION orders_find_key_and_success(p_prefix text, p_digest text, p_key text)
RETURNS TABLE (
    digest text,
    client_id bigint, client_name text, client_enabled boolean, rate_limit_per_minute integer,
    allowed_networks text[],
    account_id bigint, account_currency text, account_enabled boolean, price_list_id bigint,
    is_only_client boolean,
    fingerprint bytea, response bytea
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT found.*, success.fingerprint, success.response
      FROM accounts_find_key(p_prefix) found
      LEFT JOIN LATERAL (
            SELECT fingerprint, response FROM idempotency_idempotencyrecord
             WHERE client_id = CASE WHEN found.digest = p_digest THEN found.client_id END
               AND key = p_key OFFSET 0
           ) success ON true;
END $$;

-- The order of a client with this reference, as a row of orders_of.
CREATE OR REPLACE FUNCTION orders_find_key_and_order(
    p_prefix text, p_digest text, p_reference text
) RETURNS TABLE (
    digest text,
    client_id bigint, client_name text, client_enabled boolean, rate_limit_per_minute integer,
    allowed_networks text[],
    account_id bigint, account_currency text, account_enabled boolean, price_list_id bigint,
    is_only_client boolean,
    reference text, quantity smallint, units_per_sale smallint, unit_price numeric,
    total_price numeric, currency text, created_at timestamptz,
    product_id bigint, variation_id bigint, merchant_reference text,
    codes_mac bytea, sealed_codes bytea[], digests bytea[],
    system_product_id bigint, player_id text, fulfilment_status text, refunded boolean,
    failure_reason text
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT found.*, sold.*
      FROM accounts_find_key(p_prefix) found
      LEFT JOIN LATERAL orders_of(
            CASE WHEN found.digest = p_digest THEN found.client_id END, found.account_id,
            p_reference, NULL, NULL) sold ON true;
END $$;
