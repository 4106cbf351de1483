-- For triggers of records: a record has the time of the statement that adds it, and no other.
CREATE OR REPLACE FUNCTION core_refuse_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the database chooses the time of a row of %', TG_TABLE_NAME
        USING ERRCODE = '42501';
END $$;
