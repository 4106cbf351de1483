-- A transfer is a record of what left this cell or came into it: it never changes.
CREATE OR REPLACE FUNCTION catalogue_refuse_transfer_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'transfers are never changed or deleted: % refused', TG_OP
        USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_transfer_is_a_record
    BEFORE UPDATE OR DELETE OR TRUNCATE ON catalogue_stocktransfer
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_refuse_transfer_change();
