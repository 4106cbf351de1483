-- A code names the order that took it. Deferred, because a purchase takes its codes before it
-- writes its order.
ALTER TABLE catalogue_vouchercode
    ADD CONSTRAINT catalogue_vouchercode_order_fk FOREIGN KEY (order_id)
    REFERENCES orders_order (id) DEFERRABLE INITIALLY DEFERRED;

-- An order is a record: what was sold, for how much and to whom never changes.
CREATE OR REPLACE FUNCTION orders_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an order is a record: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER orders_order_is_a_record
    BEFORE UPDATE OR DELETE OR TRUNCATE ON orders_order
    FOR EACH STATEMENT EXECUTE FUNCTION orders_refuse_change();
