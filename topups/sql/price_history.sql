-- Records every change of a top-up product's price, whether from the back office, an import or SQL.
-- A next price is recorded when it is chosen, with the time at which it begins, and again if it is
-- withdrawn.
-- changed_by is the actor that the transaction named (name_actor in core/database/functions.py),
-- or else the database user. Code that names an actor writes the audit entry of the change. Without
-- a name, this trigger writes it: no price changes without an entry. asked_by is who asked for the
-- low prices of the transaction (name_asker).
CREATE OR REPLACE FUNCTION topups_keep_price() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    named text := nullif(current_setting('voucher.actor', true), '');
    now timestamptz := clock_timestamp();
    before numeric := catalogue_regular_price(
        OLD.price, OLD.next_price, OLD.next_price_from, now);
    after numeric := catalogue_regular_price(NEW.price, NEW.next_price, NEW.next_price_from, now);
    change record;
BEGIN
    -- A next price that has begun leaves its columns: its start is a change of its own.
    IF OLD.next_price_from <= now AND NEW.next_price_from IS DISTINCT FROM OLD.next_price_from
       AND OLD.price IS DISTINCT FROM OLD.next_price THEN
        INSERT INTO topups_topuppricechange (product_id, before, after, changed_at, changed_by)
        VALUES (NEW.id, OLD.price, OLD.next_price, OLD.next_price_from, 'next price');
    END IF;
    FOR change IN
        SELECT before, after, NULL::timestamptz AS starts_at WHERE before IS DISTINCT FROM after
        UNION ALL
        SELECT OLD.next_price, after, OLD.next_price_from
         WHERE OLD.next_price_from > now AND (NEW.next_price, NEW.next_price_from)
               IS DISTINCT FROM (OLD.next_price, OLD.next_price_from)
        UNION ALL
        SELECT after, NEW.next_price, NEW.next_price_from
         WHERE NEW.next_price_from > now AND (NEW.next_price, NEW.next_price_from)
               IS DISTINCT FROM (OLD.next_price, OLD.next_price_from)
    LOOP
        INSERT INTO topups_topuppricechange (
            product_id, before, after, starts_at, changed_by, asked_by)
        VALUES (NEW.id, change.before, change.after, change.starts_at,
                coalesce(named, 'sql:' || session_user),
                coalesce(current_setting('voucher.asked_by', true), ''));
        IF named IS NULL THEN
            PERFORM audit_record_price(
                'topups.topupproduct', NEW.id, NEW.name, change.before, change.after);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER topups_price_is_remembered
    AFTER UPDATE OF price, next_price, next_price_from ON topups_topupproduct
    FOR EACH ROW
    WHEN ((NEW.price, NEW.next_price, NEW.next_price_from)
          IS DISTINCT FROM (OLD.price, OLD.next_price, OLD.next_price_from))
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
    BEFORE UPDATE OR TRUNCATE ON topups_topuppricechange
    FOR EACH STATEMENT EXECUTE FUNCTION topups_guard_price_history();

-- Checked at commit: Django deletes the history before the top-up product.
DROP TRIGGER IF EXISTS topups_price_history_is_kept ON topups_topuppricechange;
CREATE CONSTRAINT TRIGGER topups_price_history_is_kept
    AFTER DELETE ON topups_topuppricechange DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION topups_guard_price_history();
