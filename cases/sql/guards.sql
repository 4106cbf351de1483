-- A case is about one order and one client's money for ever, and ends once.
CREATE OR REPLACE FUNCTION cases_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a case and its messages are kept: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER cases_case_is_kept
    BEFORE UPDATE ON cases_case
    FOR EACH ROW
    WHEN ((OLD.account_id, OLD.order_id, OLD.code_id, OLD.paid_order_id, OLD.opened_by_id,
           OLD.opened_at)
          IS DISTINCT FROM
          (NEW.account_id, NEW.order_id, NEW.code_id, NEW.paid_order_id, NEW.opened_by_id,
           NEW.opened_at)
          OR (OLD.state IN ('rejected', 'replaced', 'credited')
              AND (OLD.state, OLD.version, OLD.decided_by_id, OLD.closed_at)
                  IS DISTINCT FROM (NEW.state, NEW.version, NEW.decided_by_id, NEW.closed_at)))
    EXECUTE FUNCTION cases_refuse_change();

-- Only an entry of the ledger replaces or credits (outcomes.sql).
CREATE OR REPLACE TRIGGER cases_outcome_is_in_the_ledger
    BEFORE INSERT OR UPDATE OF state ON cases_case
    FOR EACH ROW
    WHEN (NEW.state IN ('replaced', 'credited') AND pg_trigger_depth() = 0)
    EXECUTE FUNCTION cases_refuse_change();

CREATE OR REPLACE TRIGGER cases_message_is_kept
    BEFORE UPDATE OR DELETE OR TRUNCATE ON cases_casemessage
    FOR EACH STATEMENT EXECUTE FUNCTION cases_refuse_change();

CREATE OR REPLACE TRIGGER cases_case_is_not_deleted
    BEFORE DELETE OR TRUNCATE ON cases_case
    FOR EACH STATEMENT EXECUTE FUNCTION cases_refuse_change();

-- The code is one of the order, and the account bought the order.
CREATE OR REPLACE FUNCTION cases_check_subject() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
BEGIN
    PERFORM FROM orders_order AS sale
      JOIN accounts_apiclient AS client ON client.id = sale.client_id
     WHERE sale.id = NEW.order_id
       AND client.account_id = NEW.account_id
       AND (NEW.code_id IS NULL
            OR EXISTS (SELECT FROM catalogue_vouchercode
                        WHERE id = NEW.code_id AND order_id = sale.id))
       AND NEW.paid_order_id = CASE WHEN sale.case_id IS NULL THEN sale.id
                                    ELSE (SELECT paid_order_id FROM cases_case
                                           WHERE id = sale.case_id) END;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the case is not about an order of its account' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER cases_case_is_about_its_order
    BEFORE INSERT ON cases_case
    FOR EACH ROW EXECUTE FUNCTION cases_check_subject();
