-- The next price of a top-up product, as catalogue/sql/regular_price.sql has it for shelves.
CREATE OR REPLACE TRIGGER topups_price_replaces_the_next
    BEFORE UPDATE OF price ON topups_topupproduct
    FOR EACH ROW
    WHEN (OLD.next_price_from <= clock_timestamp()
          AND NEW.next_price_from = OLD.next_price_from)
    EXECUTE FUNCTION catalogue_replace_begun_price('price');

CREATE OR REPLACE TRIGGER topups_begun_price_is_kept
    BEFORE UPDATE OF next_price, next_price_from ON topups_topupproduct
    FOR EACH ROW
    WHEN (OLD.next_price_from <= clock_timestamp()
          AND NEW.next_price_from IS DISTINCT FROM OLD.next_price_from
          AND NEW.price IS NOT DISTINCT FROM OLD.price)
    EXECUTE FUNCTION catalogue_replace_begun_price('next_price');
