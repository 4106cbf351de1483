-- Keeps every id that a field of a top-up product ever had, with the field's name. An id never means
-- another field later, whoever adds the field: the back office, an import or SQL. A product has at
-- most 30 fields (contract, "Limits").
--
-- The product's row is locked, so that two new fields cannot both be the last one.
CREATE OR REPLACE FUNCTION topups_keep_field_id() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    known text;
BEGIN
    PERFORM 1 FROM topups_topupproduct WHERE id = NEW.product_id FOR NO KEY UPDATE;
    IF (SELECT count(*) FROM topups_topupfield WHERE product_id = NEW.product_id) >= 30 THEN
        RAISE EXCEPTION 'top-up product % already has 30 fields, and cannot have more',
            NEW.product_id USING ERRCODE = '23514';
    END IF;
    INSERT INTO topups_fieldid (product_id, number, name)
    VALUES (NEW.product_id, NEW.number, NEW.name)
        ON CONFLICT (product_id, number) DO NOTHING;
    SELECT name INTO known FROM topups_fieldid
     WHERE product_id = NEW.product_id AND number = NEW.number;
    IF known <> NEW.name THEN
        RAISE EXCEPTION 'id % of top-up product % is the id of the field "%", and is never reused',
            NEW.number, NEW.product_id, known USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER topups_field_id_is_kept
    BEFORE INSERT ON topups_topupfield
    FOR EACH ROW EXECUTE FUNCTION topups_keep_field_id();

CREATE OR REPLACE FUNCTION topups_guard_field_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF NOT EXISTS (SELECT FROM topups_topupproduct WHERE id = OLD.product_id) THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'the id of a field never means another field: % of % refused',
        TG_OP, TG_TABLE_NAME USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER topups_field_keeps_its_id
    BEFORE UPDATE ON topups_topupfield
    FOR EACH ROW
    WHEN ((OLD.product_id, OLD.number, OLD.name)
          IS DISTINCT FROM (NEW.product_id, NEW.number, NEW.name))
    EXECUTE FUNCTION topups_guard_field_ids();

CREATE OR REPLACE TRIGGER topups_field_ids_are_append_only
    BEFORE UPDATE OR TRUNCATE ON topups_fieldid
    FOR EACH STATEMENT EXECUTE FUNCTION topups_guard_field_ids();

-- Checked at commit: Django deletes the ids before the top-up product.
DROP TRIGGER IF EXISTS topups_field_ids_are_kept ON topups_fieldid;
CREATE CONSTRAINT TRIGGER topups_field_ids_are_kept
    AFTER DELETE ON topups_fieldid DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION topups_guard_field_ids();
