-- Records every change of a top-up product's price, whether from the back office, an import or SQL.
-- changed_by is the actor that the transaction named (name_actor in core/database/functions.py),
-- or else the database user. Code that names an actor writes the audit entry of the change. Without
-- a name, this trigger writes it: no price changes without an entry.
CREATE OR REPLACE FUNCTION topups_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named text := nullif(current_setting('voucher.actor', true), '');
BEGIN
    INSERT INTO topups_pricechange (product_id, before, after, changed_by)
    VALUES (NEW.id, OLD.price, NEW.price, coalesce(named, 'sql:' || session_user));
    IF named IS NULL THEN
        PERFORM audit_record_price('topups.topupproduct', NEW.id, NEW.name, OLD.price, NEW.price);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER topups_price_is_remembered
    AFTER UPDATE OF price ON topups_topupproduct
    FOR EACH ROW WHEN (NEW.price IS DISTINCT FROM OLD.price)
    EXECUTE FUNCTION topups_keep_price();

-- The history is append-only. Rows are deleted only together with their top-up product.
CREATE OR REPLACE FUNCTION topups_guard_price_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF NOT EXISTS (SELECT FROM topups_topupproduct WHERE id = OLD.product_id) THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'the price history is append-only: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER topups_price_history_is_append_only
    BEFORE UPDATE OR TRUNCATE ON topups_pricechange
    FOR EACH STATEMENT EXECUTE FUNCTION topups_guard_price_history();

-- Checked at commit: Django deletes the history before the top-up product.
DROP TRIGGER IF EXISTS topups_price_history_is_kept ON topups_pricechange;
CREATE CONSTRAINT TRIGGER topups_price_history_is_kept
    AFTER DELETE ON topups_pricechange DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION topups_guard_price_history();
