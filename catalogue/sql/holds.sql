-- A void code stays void, and a held one is not deleted: the same code could be imported and sold
-- again.
CREATE OR REPLACE FUNCTION catalogue_refuse_unvoid() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    voided timestamptz;
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'code % is held or void', OLD.id USING ERRCODE = '42501';
    END IF;
    -- Waits while the hold is being voided. The lock must not depend on voided_at: the old version of
    -- the row would not match, and nothing would wait.
    SELECT voided_at INTO voided FROM catalogue_codehold WHERE id = OLD.hold_id FOR SHARE;
    IF voided IS NOT NULL THEN
        RAISE EXCEPTION 'code % is void', OLD.id USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER catalogue_void_code_stays_void
    BEFORE UPDATE OF hold_id ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (OLD.hold_id IS NOT NULL AND NEW.hold_id IS DISTINCT FROM OLD.hold_id)
    EXECUTE FUNCTION catalogue_refuse_unvoid();

CREATE OR REPLACE TRIGGER catalogue_held_code_is_kept
    BEFORE DELETE ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (OLD.hold_id IS NOT NULL)
    EXECUTE FUNCTION catalogue_refuse_unvoid();

CREATE OR REPLACE FUNCTION catalogue_refuse_hold_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'hold % stays as it is', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_void_hold_stays_void
    BEFORE UPDATE ON catalogue_codehold
    FOR EACH ROW
    WHEN (OLD.voided_at IS NOT NULL OR (NEW.reason, NEW.held_at, NEW.held_by)
          IS DISTINCT FROM (OLD.reason, OLD.held_at, OLD.held_by))
    EXECUTE FUNCTION catalogue_refuse_hold_change();
