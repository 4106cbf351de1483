-- Every change of a package's price is kept, whoever made it: back office, import or SQL.
CREATE OR REPLACE FUNCTION topups_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO topups_pricechange (product_id, before, after)
    VALUES (NEW.id, OLD.price, NEW.price);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER topups_price_is_remembered
    AFTER UPDATE OF price ON topups_topupproduct
    FOR EACH ROW WHEN (NEW.price IS DISTINCT FROM OLD.price)
    EXECUTE FUNCTION topups_keep_price();
