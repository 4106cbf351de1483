-- A code is deleted only with its whole batch, when the import is taken back.
CREATE OR REPLACE FUNCTION catalogue_check_removal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM removed
                WHERE NOT EXISTS (SELECT FROM catalogue_batch
                                   WHERE taken_back_at IS NOT NULL
                                     AND shelf_id = removed.shelf_id
                                     AND removed.id BETWEEN first_code AND last_code)) THEN
        RAISE EXCEPTION 'codes are deleted only when their import is taken back'
            USING ERRCODE = '42501';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_code_leaves_with_its_batch
    AFTER DELETE ON catalogue_vouchercode
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_check_removal();

-- An import that was taken back stays so.
CREATE OR REPLACE FUNCTION catalogue_refuse_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the import of batch % was taken back', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_batch_stays_taken_back
    BEFORE UPDATE OF taken_back_at ON catalogue_batch
    FOR EACH ROW
    WHEN (OLD.taken_back_at IS NOT NULL AND NEW.taken_back_at IS DISTINCT FROM OLD.taken_back_at)
    EXECUTE FUNCTION catalogue_refuse_return();
