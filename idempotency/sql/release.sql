-- Deletes the record of a refused purchase, so that the client can send the same request again. If
-- a crash loses the delete, the key stays in progress, and a retry takes it over after five
-- minutes.
CREATE OR REPLACE FUNCTION idempotency_release(
    p_record bigint, p_attempt integer, OUT released boolean
) LANGUAGE plpgsql AS $$
BEGIN
    -- enable_seqscan: docs/performance.md
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);
    DELETE FROM idempotency_idempotencyrecord
     WHERE id = p_record AND attempt = p_attempt AND order_reference IS NULL;
    released := FOUND;
END $$;
