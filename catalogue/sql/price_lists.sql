-- An entry of a price list is a record. New ones begin now or later. One that has begun can only be
-- ended, now or later; one that has not can also be deleted. The audit trail and the entries
-- together then say which price held when. (`target` is generated after this trigger.)
CREATE OR REPLACE FUNCTION catalogue_guard_price_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE TG_OP
        WHEN 'INSERT' THEN
            IF NEW.valid_from < transaction_timestamp() THEN
                RAISE EXCEPTION 'a price list entry cannot begin in the past'
                    USING ERRCODE = '42501';
            END IF;
        WHEN 'UPDATE' THEN
            IF to_jsonb(NEW) - '{target,valid_until,ended_by}'::text[]
                   <> to_jsonb(OLD) - '{target,valid_until,ended_by}'::text[]
               OR coalesce(OLD.valid_until, 'infinity') < transaction_timestamp()
               OR coalesce(NEW.valid_until, 'infinity') < transaction_timestamp() THEN
                RAISE EXCEPTION 'a price list entry can only be ended, now or later'
                    USING ERRCODE = '42501';
            END IF;
        WHEN 'DELETE' THEN
            IF OLD.valid_from <= clock_timestamp() THEN
                RAISE EXCEPTION 'a price list entry that has begun is kept' USING ERRCODE = '42501';
            END IF;
            RETURN OLD;
        ELSE
            RAISE EXCEPTION 'price list entries are kept' USING ERRCODE = '42501';
    END CASE;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER catalogue_price_entry_is_a_record
    BEFORE INSERT OR UPDATE OR DELETE ON catalogue_pricelistentry
    FOR EACH ROW EXECUTE FUNCTION catalogue_guard_price_entry();

CREATE OR REPLACE TRIGGER catalogue_price_entries_are_kept
    BEFORE TRUNCATE ON catalogue_pricelistentry
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_guard_price_entry();
