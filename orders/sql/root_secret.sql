-- Whether a code, a replay or a second factor is sealed with this key; with any key if it is null.
CREATE OR REPLACE FUNCTION orders_is_sealed(p_key integer) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM catalogue_vouchercode
                    WHERE get_byte(sealed, 0) = coalesce(p_key, get_byte(sealed, 0)))
        OR EXISTS (SELECT FROM idempotency_idempotencyrecord
                    WHERE get_byte(response, 0) = coalesce(p_key, get_byte(response, 0)))
        OR EXISTS (SELECT FROM accounts_secondfactor
                    WHERE get_byte(sealed_key, 0) = coalesce(p_key, get_byte(sealed_key, 0)))
$$;

-- A service that has sealed something is not new, and makes no second root secret. A key that
-- stored values need stays: `reseal` removes the others.
CREATE OR REPLACE FUNCTION orders_keep_root() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF EXISTS (SELECT FROM core_encryptionkey) OR NOT orders_is_sealed(NULL) THEN
            RETURN NEW;
        END IF;
    ELSIF NOT orders_is_sealed(OLD.key_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'values are sealed with the present root secret' USING ERRCODE = '23001';
END $$;

CREATE OR REPLACE TRIGGER orders_root_is_made_once
    BEFORE INSERT ON core_rootfingerprint
    FOR EACH ROW EXECUTE FUNCTION orders_keep_root();

CREATE OR REPLACE TRIGGER orders_key_in_use_stays
    BEFORE DELETE ON core_encryptionkey
    FOR EACH ROW EXECUTE FUNCTION orders_keep_root();
