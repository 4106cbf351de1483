-- Moves the wallet's balance by the entry that is being inserted, and writes the balance after it.
--
-- The UPDATE locks the wallet until commit. Only then does the entry get its id, so the entries of
-- one wallet have ids in the order in which they moved it: reconcile can replay them. The id that
-- the column's default gave was drawn before the lock, perhaps before that of an entry now past it.
--
-- Refuses with SQLSTATE VT001 and the reason as its message (see config/database/functions.py).
CREATE OR REPLACE FUNCTION wallets_post_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- To PostgreSQL it is more than any number, and would pass for a balance.
    IF NEW.amount = 'NaN' THEN
        RAISE EXCEPTION 'an amount is a number' USING ERRCODE = '23514';
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
