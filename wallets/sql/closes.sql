-- A close is written once, and so is the statement of a month.
CREATE OR REPLACE FUNCTION wallets_refuse_to_reopen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a close is never rewritten: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER wallets_closes_of_wallets_are_kept
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_walletclose
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_to_reopen();

CREATE OR REPLACE TRIGGER wallets_closes_of_days_are_kept
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_dailyclose
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_to_reopen();

CREATE OR REPLACE TRIGGER wallets_statements_are_kept
    BEFORE UPDATE OR DELETE OR TRUNCATE ON wallets_monthlystatement
    FOR EACH STATEMENT EXECUTE FUNCTION wallets_refuse_to_reopen();
