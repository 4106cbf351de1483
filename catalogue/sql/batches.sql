-- A batch keeps its codes, and who imported them. What people say of it may be corrected.
CREATE OR REPLACE FUNCTION catalogue_refuse_other_codes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'batch % keeps its codes', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_batch_keeps_its_codes
    BEFORE UPDATE ON catalogue_batch
    FOR EACH ROW
    WHEN (
        (NEW.id, NEW.shelf_id, NEW.first_code, NEW.last_code, NEW.file_digest, NEW.imported_by,
         NEW.imported_at)
        IS DISTINCT FROM
        (OLD.id, OLD.shelf_id, OLD.first_code, OLD.last_code, OLD.file_digest, OLD.imported_by,
         OLD.imported_at)
    )
    EXECUTE FUNCTION catalogue_refuse_other_codes();
