-- The price of a shelf or top-up product for merchants without prices of their own. A next price
-- replaces the price at its time, without a task. PostgreSQL inlines the function.
CREATE OR REPLACE FUNCTION catalogue_regular_price(
    price numeric, next_price numeric, next_price_from timestamptz, at timestamptz
) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN at >= next_price_from THEN next_price ELSE price END
$$;

-- A writer that sets the price after the next price has begun replaces it. One that only chooses
-- another next price keeps the price that has begun. A purchase updates other columns of the shelf
-- and pays for no trigger.
CREATE OR REPLACE FUNCTION catalogue_replace_begun_price() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_ARGV[0] = 'price' THEN
        NEW.next_price := NULL;
        NEW.next_price_from := NULL;
    ELSE
        NEW.price := OLD.next_price;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER catalogue_price_replaces_the_next
    BEFORE UPDATE OF price ON catalogue_shelf
    FOR EACH ROW
    WHEN (OLD.next_price_from <= clock_timestamp()
          AND NEW.next_price_from = OLD.next_price_from)
    EXECUTE FUNCTION catalogue_replace_begun_price('price');

CREATE OR REPLACE TRIGGER catalogue_begun_price_is_kept
    BEFORE UPDATE OF next_price, next_price_from ON catalogue_shelf
    FOR EACH ROW
    WHEN (OLD.next_price_from <= clock_timestamp()
          AND NEW.next_price_from IS DISTINCT FROM OLD.next_price_from
          AND NEW.price IS NOT DISTINCT FROM OLD.price)
    EXECUTE FUNCTION catalogue_replace_begun_price('next_price');
