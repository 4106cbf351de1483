-- Writes the order's reference on the record, inside the purchase's transaction.
--
-- The fence: an attempt that lost the key to another one, or whose record was cleaned away, is
-- refused here with VT001 attempt_lost, and its purchase rolls back.
CREATE OR REPLACE FUNCTION idempotency_stamp(p_record bigint, p_attempt integer, p_reference text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE idempotency_idempotencyrecord
       SET order_reference = p_reference
     WHERE id = p_record AND attempt = p_attempt AND order_reference IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'attempt_lost';
    END IF;
END $$;
