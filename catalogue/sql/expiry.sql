-- An expired code is not sold, whoever tries (take_codes.sql looks first). An order is the only value
-- that order_id ever gets (guards.sql).
CREATE OR REPLACE FUNCTION catalogue_refuse_expired() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'code % has expired', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_expired_code_is_not_sold
    BEFORE UPDATE OF order_id ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (NEW.expires_on < (clock_timestamp() AT TIME ZONE 'UTC')::date)
    EXECUTE FUNCTION catalogue_refuse_expired();

-- Batches and codes keep the last day on which they may be sold.
CREATE OR REPLACE FUNCTION catalogue_refuse_other_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% % keeps its expiry', TG_TABLE_NAME, OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_code_keeps_its_expiry
    BEFORE UPDATE OF expires_on ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (NEW.expires_on IS DISTINCT FROM OLD.expires_on)
    EXECUTE FUNCTION catalogue_refuse_other_expiry();

CREATE OR REPLACE TRIGGER catalogue_batch_keeps_its_expiry
    BEFORE UPDATE OF expires_on ON catalogue_batch
    FOR EACH ROW
    WHEN (NEW.expires_on IS DISTINCT FROM OLD.expires_on)
    EXECUTE FUNCTION catalogue_refuse_other_expiry();
