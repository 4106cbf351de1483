-- A closed wallet never changes again: its account has moved to another cell and pays there. Every
-- UPDATE is refused with VT001 wallet_closed. A ledger entry updates its wallet (post_entry.sql),
-- so a purchase, a refund or a booking is refused too.
--
-- Closing waits for a purchase that holds the wallet's lock. A purchase that waited for the closing
-- finds the wallet closed.
CREATE OR REPLACE FUNCTION wallets_refuse_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'wallet_closed';
END $$;

CREATE OR REPLACE TRIGGER wallets_closed_wallet_stays
    BEFORE UPDATE ON wallets_wallet
    FOR EACH ROW WHEN (OLD.closed_at IS NOT NULL)
    EXECUTE FUNCTION wallets_refuse_closed();
