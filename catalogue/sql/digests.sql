-- Each code has one row in catalogue_codedigest, whose primary key refuses a second code with the
-- same digest. The rows come and go with the codes, whoever adds or deletes these, and otherwise
-- never change. A code keeps its id and its digest (contents.sql).

-- The first half of a digest, as the type that takes the least space.
CREATE OR REPLACE FUNCTION catalogue_half_digest(p_digest bytea) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT encode(substring(p_digest FROM 1 FOR 16), 'hex')::uuid
$$;

-- In the order of the index: an import of a million codes writes each of its pages once.
CREATE OR REPLACE FUNCTION catalogue_add_digests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_codedigest (digest, code_id)
    SELECT catalogue_half_digest(digest), id FROM added ORDER BY 1;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_code_has_a_digest
    AFTER INSERT ON catalogue_vouchercode
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_add_digests();

CREATE OR REPLACE FUNCTION catalogue_delete_digests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM catalogue_codedigest
     WHERE digest IN (SELECT catalogue_half_digest(digest) FROM removed);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_digest_leaves_with_its_code
    AFTER DELETE ON catalogue_vouchercode
    REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_delete_digests();

CREATE OR REPLACE FUNCTION catalogue_refuse_digest_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'digests come and go with their codes: % refused', TG_OP
        USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_digest_comes_with_its_code
    BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON catalogue_codedigest
    FOR EACH STATEMENT
    WHEN (pg_trigger_depth() = 0)
    EXECUTE FUNCTION catalogue_refuse_digest_change();
