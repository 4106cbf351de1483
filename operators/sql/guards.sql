-- The audit trail is append-only.
CREATE OR REPLACE FUNCTION operators_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER operators_audit_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON operators_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION operators_refuse_change();
