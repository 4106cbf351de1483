-- Writes the order reference and the time on the record, inside the transaction of the purchase.
--
-- Refuses with VT001 attempt_lost if another attempt has taken the key over or cleanup has deleted
-- the record. The purchase then rolls back (docs/decisions/0003-attempt-numbers.md).
CREATE OR REPLACE FUNCTION idempotency_stamp(p_record bigint, p_attempt integer, p_reference text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE idempotency_idempotencyrecord
       SET order_reference = p_reference, bought_at = clock_timestamp()
     WHERE id = p_record AND attempt = p_attempt AND order_reference IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'attempt_lost';
    END IF;
END $$;
