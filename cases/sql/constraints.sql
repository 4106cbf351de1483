-- An order without a price names the case that it is the outcome of.
ALTER TABLE orders_order
    ADD CONSTRAINT orders_order_case_fk FOREIGN KEY (case_id)
    REFERENCES cases_case (id) DEFERRABLE INITIALLY DEFERRED;
