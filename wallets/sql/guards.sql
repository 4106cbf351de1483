-- The ledger is append-only.
CREATE OR REPLACE FUNCTION wallets_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER wallets_ledger_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_ledgerentry
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_change();

-- A wallet starts empty, and only the ledger's trigger (post_entry.sql) changes its balance and its
-- chain.
CREATE OR REPLACE FUNCTION wallets_guard_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a balance changes only by a ledger entry' USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER wallets_balance_moves_by_ledger
    BEFORE UPDATE OF balance, chain ON wallets_wallet
    FOR EACH ROW
    WHEN (pg_trigger_depth() = 0
          AND (NEW.balance IS DISTINCT FROM OLD.balance OR NEW.chain IS DISTINCT FROM OLD.chain))
    EXECUTE FUNCTION wallets_guard_balance();

CREATE OR REPLACE TRIGGER wallets_wallet_starts_empty
    BEFORE INSERT ON wallets_wallet
    FOR EACH ROW
    WHEN (NEW.balance <> 0 OR NEW.chain IS NOT NULL)
    EXECUTE FUNCTION wallets_guard_balance();
