-- The reason of a booking, which its merchant reads. The note is only for staff.

-- The hash of what the merchant does not see and of the reason, as hexadecimal text. Entries
-- without a reason keep the hash that chain.sql gave them (docs/decisions/0106-reasons.md).
CREATE OR REPLACE FUNCTION wallets_hidden_hash(
    p_salt uuid, p_actor text, p_booking_reference text, p_note text, p_reason text
) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_reason IS NULL
        THEN wallets_hidden_hash(p_salt, p_actor, p_booking_reference, p_note)
        ELSE encode(sha256(convert_to(
            wallets_counted(p_salt::text) || wallets_counted(p_actor)
            || wallets_counted(p_booking_reference) || wallets_counted(p_note)
            || wallets_counted(p_reason), 'UTF8')), 'hex')
    END
$$;

-- A booking that waits keeps its reason, as it keeps its note (approvals.sql).
CREATE OR REPLACE TRIGGER wallets_approval_keeps_reason
    BEFORE UPDATE ON wallets_bookingapproval
    FOR EACH ROW
    WHEN (OLD.reason IS DISTINCT FROM NEW.reason)
    EXECUTE FUNCTION wallets_keep_approval();
