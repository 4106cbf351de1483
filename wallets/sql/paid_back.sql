-- Refuses a refund or credit of an order that this wallet did not pay for, and one that makes
-- refunds and credits more than the order cost: VT001 not_paid_by_wallet or more_than_paid.
--
-- Runs after the insert. The trigger in post_entry.sql has locked the wallet by then, so the entries
-- of one order wait for each other, and each sees the ones before it and itself. Purchases do not
-- call it.
CREATE OR REPLACE FUNCTION wallets_check_paid_back() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
DECLARE
    paid boolean;
    total numeric;
BEGIN
    SELECT bool_or(kind = 'purchase' AND wallet_id = NEW.wallet_id), sum(amount) INTO paid, total
      FROM wallets_ledgerentry WHERE order_reference = NEW.order_reference;
    IF paid IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'not_paid_by_wallet';
    END IF;
    IF total > 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'more_than_paid';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER wallets_paid_back_at_most_once
    AFTER INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.kind IN ('refund', 'credit'))
    EXECUTE FUNCTION wallets_check_paid_back();
