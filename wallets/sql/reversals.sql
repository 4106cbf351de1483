-- Refuses a reversal that is not the opposite of a booking: VT001 not_a_reversal. A reversal cannot be
-- reversed. The booking reference names the entry, and is unique, so an entry is reversed once.
--
-- Also refuses other spellings of such a reference: `Reversal of entry 7` would take the key of the
-- reversal (booking_keys.sql), and `reversal-of-entry:07` would reverse the entry once more.
--
-- Runs after post_entry.sql has locked the wallet. Purchases do not call it.
--
-- The trigger's condition calls no function: PostgreSQL plans the condition again for each statement
-- (docs/performance.md, "Conditions of triggers and checks").
CREATE OR REPLACE FUNCTION wallets_check_reversal() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
BEGIN
    IF wallets_booking_key(NEW.booking_reference) NOT LIKE 'reversalofentry%' THEN
        RETURN NEW;
    END IF;
    PERFORM FROM wallets_ledgerentry
      WHERE id = substring(NEW.booking_reference FROM '^reversal-of-entry:([0-9]{1,18})$')::bigint
        AND NEW.booking_reference = 'reversal-of-entry:' || id
        AND booking_reference NOT LIKE 'reversal-of-entry:%'
        AND wallet_id = NEW.wallet_id
        AND kind = NEW.kind
        AND amount = -NEW.amount
        AND order_reference IS NOT DISTINCT FROM NEW.order_reference;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'not_a_reversal';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER wallets_reversal_is_opposite
    BEFORE INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.booking_reference IS NOT NULL)
    EXECUTE FUNCTION wallets_check_reversal();
