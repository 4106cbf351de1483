-- Ends an attempt whose outcome its process does not know, if it has not bought: a retry then does
-- not wait for five minutes. It is a takeover that does not go on with the purchase.
--
-- The attempt gets another number. If its purchase still runs somewhere, its stamp finds that number
-- and it rolls back. If it is committing, this UPDATE waits, then finds the order and changes
-- nothing. Its commit is not durable: if a crash loses it, the key stays in progress.
CREATE OR REPLACE FUNCTION idempotency_end_attempt(
    p_record bigint, p_attempt integer, p_window_seconds integer, OUT ended boolean
) LANGUAGE plpgsql AS $$
BEGIN
    -- enable_seqscan: docs/performance.md
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);
    UPDATE idempotency_idempotencyrecord
       SET attempt = attempt + 1,
           started_at = started_at - make_interval(secs => p_window_seconds)
     WHERE id = p_record AND attempt = p_attempt AND order_reference IS NULL;
    ended := FOUND;
END $$;
