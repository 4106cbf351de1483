-- Signed roots and their leaves are append-only.
CREATE OR REPLACE TRIGGER wallets_roots_are_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_signedroot
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_change();

CREATE OR REPLACE TRIGGER wallets_leaves_are_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_rootleaf
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_change();
