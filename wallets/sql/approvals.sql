-- A booking that waits for approval stays what its maker asked for, and is decided once.
CREATE OR REPLACE FUNCTION wallets_keep_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was asked for and what was decided is kept' USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER wallets_approval_is_kept
    BEFORE UPDATE ON wallets_bookingapproval
    FOR EACH ROW
    WHEN (OLD.state <> 'waiting'
          OR (OLD.wallet_id, OLD.kind, OLD.amount, OLD.order_reference, OLD.note,
              OLD.booking_reference, OLD.asked_by_id, OLD.asked_at, OLD.expires_at)
             IS DISTINCT FROM
             (NEW.wallet_id, NEW.kind, NEW.amount, NEW.order_reference, NEW.note,
              NEW.booking_reference, NEW.asked_by_id, NEW.asked_at, NEW.expires_at))
    EXECUTE FUNCTION wallets_keep_approval();
