-- Forgets a key whose purchase was refused, so that the same request can be sent again. Where a
-- crash loses this the key is in progress, and a retry takes it over when the window is past.
CREATE OR REPLACE FUNCTION idempotency_release(
    p_record bigint, p_attempt integer, OUT released boolean
) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);  -- docs/performance.md, "The young table"
    DELETE FROM idempotency_idempotencyrecord
     WHERE id = p_record AND attempt = p_attempt AND order_reference IS NULL;
    released := FOUND;
END $$;
