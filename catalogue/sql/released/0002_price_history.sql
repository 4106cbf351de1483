-- Records every change of a shelf's price, whether from the back office, an import or SQL.
-- changed_by is the actor that the transaction named (name_actor in core/database/functions.py),
-- or else the database user. Code that names an actor writes the audit entry of the change. Without
-- a name, this trigger writes it: no price changes without an entry.
CREATE OR REPLACE FUNCTION catalogue_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named text := nullif(current_setting('voucher.actor', true), '');
BEGIN
    INSERT INTO catalogue_pricechange (shelf_id, before, after, changed_by)
    VALUES (NEW.id, OLD.price, NEW.price, coalesce(named, 'sql:' || session_user));
    IF named IS NULL THEN
        PERFORM audit_record_price('catalogue.shelf', NEW.id, (
            SELECT concat_ws(' / ', product.name, variation.name)
              FROM catalogue_product AS product
              LEFT JOIN catalogue_variation AS variation ON variation.id = NEW.variation_id
             WHERE product.id = NEW.product_id
        ), OLD.price, NEW.price);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER catalogue_price_is_remembered
    AFTER UPDATE OF price ON catalogue_shelf
    FOR EACH ROW WHEN (NEW.price IS DISTINCT FROM OLD.price)
    EXECUTE FUNCTION catalogue_keep_price();

-- The history is append-only. Rows are deleted only together with their shelf.
CREATE OR REPLACE FUNCTION catalogue_guard_price_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF NOT EXISTS (SELECT FROM catalogue_shelf WHERE id = OLD.shelf_id) THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'the price history is append-only: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER catalogue_price_history_is_append_only
    BEFORE UPDATE OR TRUNCATE ON catalogue_pricechange
    FOR EACH STATEMENT EXECUTE FUNCTION catalogue_guard_price_history();

-- Checked at commit: Django deletes the history before the shelf.
DROP TRIGGER IF EXISTS catalogue_price_history_is_kept ON catalogue_pricechange;
CREATE CONSTRAINT TRIGGER catalogue_price_history_is_kept
    AFTER DELETE ON catalogue_pricechange DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION catalogue_guard_price_history();
