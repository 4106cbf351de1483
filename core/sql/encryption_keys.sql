-- Without its root secret, no sealed value opens. So a key that seals stays until another one does,
-- the secret that a key wraps never changes, and the fingerprint stays for ever.
CREATE OR REPLACE FUNCTION core_keep_root() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' OR TG_TABLE_NAME = 'core_rootfingerprint'
       OR NOT EXISTS (SELECT FROM core_encryptionkey WHERE sealing_since IS NOT NULL) THEN
        RAISE EXCEPTION 'the root secret must stay: no sealed value opens without it'
            USING ERRCODE = '42501';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER core_encryptionkey_one_stays
    AFTER DELETE ON core_encryptionkey
    FOR EACH STATEMENT EXECUTE FUNCTION core_keep_root();

CREATE OR REPLACE TRIGGER core_encryptionkey_wraps_one_secret
    BEFORE UPDATE OF key_id, wrapped ON core_encryptionkey
    FOR EACH ROW EXECUTE FUNCTION core_keep_root();

CREATE OR REPLACE TRIGGER core_rootfingerprint_stays
    BEFORE UPDATE OR DELETE ON core_rootfingerprint
    FOR EACH ROW EXECUTE FUNCTION core_keep_root();
