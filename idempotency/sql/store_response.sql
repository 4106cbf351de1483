-- Stores the creation response for replays. Its commit is not durable: if a crash loses it, the
-- record is in progress with the reference of its order, and a retry gets request_abandoned.
CREATE OR REPLACE FUNCTION idempotency_store_response(
    p_record bigint, p_attempt integer, p_response bytea, OUT stored boolean
) LANGUAGE plpgsql AS $$
BEGIN
    -- enable_seqscan: docs/performance.md
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);
    UPDATE idempotency_idempotencyrecord
       SET response = p_response
     WHERE id = p_record AND attempt = p_attempt;
    stored := FOUND;
END $$;
