-- A transfer says in which cell an account is. It never changes.
CREATE OR REPLACE FUNCTION operators_refuse_transfer_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'transfers are never changed or deleted: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER operators_transfer_is_a_record
    BEFORE UPDATE OR DELETE OR TRUNCATE ON operators_accounttransfer
    FOR EACH STATEMENT EXECUTE FUNCTION operators_refuse_transfer_change();
