-- Returns the ids of the newest request records with this request id, order reference or
-- idempotency key; NULL finds nothing.
--
-- The planner expects thousands of records for each value and would read the whole table. These
-- settings leave it the index of accounts/sql/request_records.sql.
CREATE OR REPLACE FUNCTION accounts_find_requests(
    p_request_id uuid, p_order_reference text, p_idempotency_key text, p_most integer
) RETURNS SETOF bigint LANGUAGE plpgsql STABLE
SET enable_seqscan = off
SET enable_indexscan = off  -- of the primary key, with a filter
AS $$
BEGIN
    RETURN QUERY
    SELECT id FROM accounts_requestrecord
     WHERE request_id = p_request_id
        OR order_reference = p_order_reference
        OR idempotency_key = p_idempotency_key
     ORDER BY id DESC LIMIT p_most;
END $$;
