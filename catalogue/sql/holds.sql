-- A void code stays void, and a held one is not deleted: the same code could be imported and sold
-- again.
CREATE OR REPLACE FUNCTION catalogue_refuse_unvoid() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'code % is held or void', OLD.id USING ERRCODE = '42501';
    END IF;
    PERFORM 1 FROM catalogue_codehold WHERE id = OLD.hold_id AND voided_at IS NOT NULL FOR SHARE;
    IF FOUND THEN
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
