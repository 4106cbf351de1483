-- Nobody chooses the time of a ledger entry.
CREATE OR REPLACE TRIGGER wallets_entry_has_its_time
    BEFORE INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.created_at <> statement_timestamp())
    EXECUTE FUNCTION core_refuse_time();
