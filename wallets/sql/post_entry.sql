-- Changes the balance by the amount of the inserted entry, sets the entry's balance_after, and
-- continues the wallet's hash chain (chain.sql).
--
-- Refuses with VT001 insufficient_balance or client_without_wallet (core/database/functions.py).
--
-- The UPDATE locks the wallet until commit, and the entry gets its id after that. So the ids of a
-- wallet's entries are in the order in which they changed the balance and the chain, and reconcile
-- can replay them. The id from the column's default was drawn before the lock and may be out of
-- order.
CREATE OR REPLACE FUNCTION wallets_post_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    shown text;
    hidden text;
BEGIN
    -- PostgreSQL sorts NaN above every number, so it would pass the check of the balance.
    IF NEW.amount = 'NaN' THEN
        RAISE EXCEPTION 'the amount is not a number' USING ERRCODE = '23514';
    END IF;

    -- Merchants receive the hash of what they may not see. Nobody can guess what staff wrote and
    -- compare the hash, because the salt is random. Purchases and refunds hide nothing.
    NEW.salt := CASE WHEN NEW.booking_reference IS NOT NULL THEN gen_random_uuid() END;
    shown := wallets_shown_fields(NEW.wallet_id, NEW.kind, NEW.counterpart, NEW.amount,
                                  NEW.created_at, NEW.order_reference, NEW.note);
    -- Only a booking has a reason. A purchase that began before the column was there does not see it.
    IF NEW.booking_reference IS NULL THEN
        hidden := wallets_hidden_hash(NEW.salt, NEW.actor, NULL, NEW.note);
    ELSE
        hidden := wallets_hidden_hash(NEW.salt, NEW.actor, NEW.booking_reference, NEW.note,
                                      NEW.reason);
    END IF;

    UPDATE wallets_wallet
       SET balance = balance + NEW.amount,
           chain = wallets_chained(chain, account_id, shown, balance + NEW.amount, hidden)
     WHERE account_id = NEW.wallet_id
       AND balance + NEW.amount >= 0
    RETURNING balance, chain INTO NEW.balance_after, NEW.chain;

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
