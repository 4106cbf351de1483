-- Every new product and every new variation gets its shelf.
CREATE OR REPLACE FUNCTION catalogue_add_product_shelf() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_shelf (product_id, quantity_step, available_stock)
    VALUES (NEW.id, 1, 0);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_product_has_a_shelf
    AFTER INSERT ON catalogue_product
    FOR EACH ROW EXECUTE FUNCTION catalogue_add_product_shelf();

CREATE OR REPLACE FUNCTION catalogue_add_variation_shelf() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_shelf (product_id, variation_id, quantity_step, available_stock)
    VALUES (NEW.product_id, NEW.id, 1, 0);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_variation_has_a_shelf
    AFTER INSERT ON catalogue_variation
    FOR EACH ROW EXECUTE FUNCTION catalogue_add_variation_shelf();

-- An order names the shelf it was sold from, so a shelf never changes its product or variation.
CREATE OR REPLACE FUNCTION catalogue_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a shelf never moves to another product or variation' USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_shelf_stays
    BEFORE UPDATE OF product_id, variation_id ON catalogue_shelf
    FOR EACH ROW
    WHEN (NEW.product_id <> OLD.product_id OR NEW.variation_id IS DISTINCT FROM OLD.variation_id)
    EXECUTE FUNCTION catalogue_refuse_change();
