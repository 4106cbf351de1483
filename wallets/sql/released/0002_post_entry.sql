-- Changes the balance by the amount of the inserted entry, and sets the entry's balance_after.
--
-- Refuses with VT001 insufficient_balance or client_without_wallet (core/database/functions.py).
--
-- The UPDATE locks the wallet until commit, and the entry gets its id after that. So the ids of a
-- wallet's entries are in the order in which they changed the balance, and reconcile can replay
-- them. The id from the column's default was drawn before the lock and may be out of order.
CREATE OR REPLACE FUNCTION wallets_post_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- PostgreSQL sorts NaN above every number, so it would pass the check of the balance.
    IF NEW.amount = 'NaN' THEN
        RAISE EXCEPTION 'the amount is not a number' USING ERRCODE = '23514';
    END IF;

    UPDATE wallets_wallet
       SET balance = balance + NEW.amount
     WHERE account_id = NEW.wallet_id
       AND balance + NEW.amount >= 0
    RETURNING balance INTO NEW.balance_after;

    IF NOT FOUND THEN
        PERFORM 1 FROM wallets_wallet WHERE account_id = NEW.wallet_id;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_balance';
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'client_without_wallet';
    END IF;

    NEW.id := nextval('wallets_ledgerentry_id_seq');
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER wallets_post_entry
    BEFORE INSERT ON wallets_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION wallets_post_entry();
