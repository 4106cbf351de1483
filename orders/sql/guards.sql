-- An order is a record of what was sold, to whom and for how much. It never changes.
CREATE OR REPLACE FUNCTION orders_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'orders are never changed or deleted: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER orders_order_is_a_record
    BEFORE UPDATE OR DELETE OR TRUNCATE ON orders_order
    FOR EACH STATEMENT EXECUTE FUNCTION orders_refuse_change();
