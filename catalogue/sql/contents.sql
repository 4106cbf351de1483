-- A code keeps its id, its digest, and what is sealed. `reseal` seals it again with another key: the new
-- value has the same length and names a key that seals. PostgreSQL has no keys, so it cannot see
-- what the new value holds; `reconcile --decrypt` can.
CREATE OR REPLACE FUNCTION catalogue_check_reseal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (NEW.id, NEW.digest) <> (OLD.id, OLD.digest) OR length(NEW.sealed) <> length(OLD.sealed)
       OR NOT EXISTS (SELECT FROM core_encryptionkey
                       WHERE key_id = get_byte(NEW.sealed, 0)
                         AND key_id <> get_byte(OLD.sealed, 0) AND sealing_since IS NOT NULL) THEN
        RAISE EXCEPTION 'code % keeps its content', OLD.id USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER catalogue_code_keeps_its_content
    BEFORE UPDATE OF id, sealed, digest ON catalogue_vouchercode
    FOR EACH ROW
    WHEN ((NEW.id, NEW.sealed, NEW.digest) <> (OLD.id, OLD.sealed, OLD.digest))
    EXECUTE FUNCTION catalogue_check_reseal();
