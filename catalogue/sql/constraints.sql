-- The variation of a shelf belongs to the shelf's product.
ALTER TABLE catalogue_shelf
    ADD CONSTRAINT catalogue_shelf_variation_of_product FOREIGN KEY (product_id, variation_id)
    REFERENCES catalogue_variation (product_id, id) DEFERRABLE INITIALLY DEFERRED;

-- Codes are sold in the order in which they were imported.
CREATE SEQUENCE catalogue_code_position OWNED BY catalogue_vouchercode.position;
ALTER TABLE catalogue_vouchercode
    ALTER COLUMN position SET DEFAULT nextval('catalogue_code_position');
