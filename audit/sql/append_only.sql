-- The audit trail is append-only. Only records of looking and of signing in may be deleted, and only
-- after 90 days (audit/backoffice.py). What somebody changed stays for ever.
CREATE OR REPLACE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit trail is append-only: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER audit_entry_is_append_only
    BEFORE UPDATE OR TRUNCATE ON audit_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change();

CREATE OR REPLACE TRIGGER audit_entry_is_kept
    BEFORE DELETE ON audit_auditentry
    FOR EACH ROW
    WHEN ((OLD.created_at < now() - interval '90 days'
           AND OLD.action IN ('code_revealed', 'second_factor_refused', 'sign_in_refused',
                              'signed_in', 'signed_out', 'telegram_refused')) IS NOT TRUE)
    EXECUTE FUNCTION audit_refuse_change();
