-- Refuses to change an account's currency, because the wallet's balance is in it.
CREATE OR REPLACE FUNCTION accounts_refuse_currency_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the currency of an account never changes' USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER accounts_currency_is_fixed
    BEFORE UPDATE OF currency ON accounts_account
    FOR EACH ROW WHEN (NEW.currency <> OLD.currency)
    EXECUTE FUNCTION accounts_refuse_currency_change();
