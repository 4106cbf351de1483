-- Every change of a price is kept, whoever made it: back office, import or SQL.
CREATE OR REPLACE FUNCTION catalogue_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO catalogue_pricechange (shelf_id, before, after)
    VALUES (NEW.id, OLD.price, NEW.price);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_price_is_remembered
    AFTER UPDATE OF price ON catalogue_shelf
    FOR EACH ROW WHEN (NEW.price IS DISTINCT FROM OLD.price)
    EXECUTE FUNCTION catalogue_keep_price();
