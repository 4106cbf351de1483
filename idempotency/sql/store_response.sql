-- Keeps the creation response for replays. Not durable by itself: where a crash loses it, the
-- record is in progress with its order's reference on it, which retries learn as request_abandoned.
CREATE OR REPLACE FUNCTION idempotency_store_response(
    p_record bigint, p_attempt integer, p_response bytea, OUT stored boolean
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);  -- docs/performance.md, "The young table"
    UPDATE idempotency_idempotencyrecord
       SET response = p_response
     WHERE id = p_record AND attempt = p_attempt;
    stored := FOUND;
END $$;
