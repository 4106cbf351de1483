-- Closes a case with the ledger entry of its outcome, in the transaction of the entry.
--
-- The booking reference names the case: `replacement-of-case:12` or `credit-of-case:12`. It is unique,
-- so a case has one of each; and a case that is closed, or that waits for something else, refuses the
-- entry with VT001 not_an_outcome. Other entries may not have such a reference in any spelling.
--
-- Runs after post_entry.sql has locked the wallet. Whoever decides holds the case before that, except
-- the approval of a credit: a case that waits for one has no other way to close.
CREATE OR REPLACE FUNCTION cases_close_with_entry() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
DECLARE
    of_case bigint := substring(NEW.booking_reference FROM '^[a-z]+-of-case:([0-9]{1,18})$')::bigint;
BEGIN
    -- Here and not in the trigger's condition: wallets/sql/reversals.sql.
    IF wallets_booking_key(NEW.booking_reference) !~ '^(replacement|credit)ofcase' THEN
        RETURN NULL;
    END IF;
    UPDATE cases_case AS item
       SET state = CASE NEW.kind WHEN 'credit' THEN 'credited' ELSE 'replaced' END,
           closed_at = now(), waits_since = NULL, email_due = true, version = version + 1
      FROM orders_order AS paid
     WHERE item.id = of_case
       AND paid.id = item.paid_order_id
       AND item.account_id = NEW.wallet_id
       AND ((NEW.kind = 'credit' AND item.state = 'crediting'
             AND NEW.booking_reference = 'credit-of-case:' || of_case
             AND NEW.order_reference = paid.reference)
            OR (NEW.kind = 'replacement' AND item.state = 'open' AND item.decided_by_id IS NOT NULL
                AND NEW.booking_reference = 'replacement-of-case:' || of_case));
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'not_an_outcome';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER cases_entry_closes_its_case
    AFTER INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.booking_reference IS NOT NULL)
    EXECUTE FUNCTION cases_close_with_entry();

-- A credit that is not approved leaves its case open.
CREATE OR REPLACE FUNCTION cases_reopen() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
BEGIN
    UPDATE cases_case
       SET state = 'open', decided_by_id = NULL, waits_since = now(), version = version + 1
     WHERE id = substring(NEW.booking_reference FROM '^credit-of-case:([0-9]{1,18})$')::bigint
       AND NEW.booking_reference = 'credit-of-case:' || id
       AND NEW.kind = 'credit'
       AND NEW.wallet_id = account_id
       AND state = 'crediting';
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER cases_refused_credit_reopens_its_case
    AFTER UPDATE OF state ON wallets_bookingapproval
    FOR EACH ROW
    WHEN (NEW.state IN ('rejected', 'withdrawn', 'expired')
          AND NEW.booking_reference LIKE 'credit-of-case:%')
    EXECUTE FUNCTION cases_reopen();
