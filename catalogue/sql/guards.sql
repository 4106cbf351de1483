-- A sold code stays with its order.
CREATE OR REPLACE FUNCTION catalogue_refuse_resale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'code % is already sold', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_code_is_sold_once
    BEFORE UPDATE OF order_id, shelf_id ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (
        OLD.order_id IS NOT NULL
        AND (NEW.order_id IS DISTINCT FROM OLD.order_id OR NEW.shelf_id <> OLD.shelf_id)
    )
    EXECUTE FUNCTION catalogue_refuse_resale();

CREATE OR REPLACE TRIGGER catalogue_sold_code_is_kept
    BEFORE DELETE ON catalogue_vouchercode
    FOR EACH ROW
    WHEN (OLD.order_id IS NOT NULL)
    EXECUTE FUNCTION catalogue_refuse_resale();

CREATE OR REPLACE FUNCTION catalogue_refuse_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the table may hold sold codes: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_codes_are_kept
    BEFORE TRUNCATE ON catalogue_vouchercode
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_refuse_truncate();
