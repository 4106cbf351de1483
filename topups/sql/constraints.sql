-- An entry of a price list about a top-up product names one that exists.
ALTER TABLE catalogue_pricelistentry
    ADD CONSTRAINT topups_product_of_price_entry FOREIGN KEY (topup_product_id)
    REFERENCES topups_topupproduct (id);
