-- A code names the order that took it. The constraint is deferred, because a purchase takes its
-- codes before it inserts its order.
ALTER TABLE catalogue_vouchercode
    ADD CONSTRAINT catalogue_vouchercode_order_fk FOREIGN KEY (order_id)
    REFERENCES orders_order (id) DEFERRABLE INITIALLY DEFERRED;
