-- The parts of an uploaded file are deleted in the transaction that ends its import.
CREATE OR REPLACE FUNCTION imports_delete_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM imports_filepart WHERE upload = OLD.token;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER imports_end_deletes_the_parts
    AFTER UPDATE OF finished_at ON imports_fileimport
    FOR EACH ROW
    WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL)
    EXECUTE FUNCTION imports_delete_parts();
