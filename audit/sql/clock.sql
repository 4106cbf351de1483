-- Nobody chooses the time of an audit entry.
CREATE OR REPLACE TRIGGER audit_entry_has_its_time
    BEFORE INSERT ON audit_auditentry
    FOR EACH ROW
    WHEN (NEW.created_at <> statement_timestamp())
    EXECUTE FUNCTION core_refuse_time();
