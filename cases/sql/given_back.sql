-- What an order gave back: money, and codes that replace its own, at the price of each.
--
-- The code of a replacement counts until it is replaced itself. What its own cases credit counts as
-- money, and not as its value as well.
CREATE OR REPLACE FUNCTION cases_given_back(p_order bigint) RETURNS numeric
LANGUAGE sql STABLE SET enable_seqscan = off AS $$  -- docs/performance.md
    SELECT paid.total_price
           + (SELECT coalesce(sum(amount), 0) FROM wallets_ledgerentry
               WHERE order_reference = paid.reference)
           + coalesce(sum(greatest(0, paid.total_price / paid.quantity
                                      - coalesce(credited.amount, 0)))
                      FILTER (WHERE item.id IS NOT NULL), 0)
      FROM orders_order AS paid
      LEFT JOIN cases_case AS item
             ON item.paid_order_id = paid.id AND item.state = 'replaced'
            AND NOT EXISTS (SELECT FROM cases_case AS later
                              JOIN orders_order AS sale ON sale.id = later.order_id
                             WHERE sale.case_id = item.id AND later.state = 'replaced')
      LEFT JOIN LATERAL (SELECT sum(entry.amount + coalesce(reversal.amount, 0)) AS amount
                           FROM orders_order AS sale
                           JOIN cases_case AS later ON later.order_id = sale.id
                           JOIN wallets_ledgerentry AS entry
                             ON entry.booking_reference = 'credit-of-case:' || later.id
                           LEFT JOIN wallets_ledgerentry AS reversal
                             ON reversal.booking_reference = 'reversal-of-entry:' || entry.id
                          WHERE sale.case_id = item.id) AS credited ON item.id IS NOT NULL
     WHERE paid.id = p_order
     GROUP BY paid.id
$$;

-- Refuses a credit or a replacement with which an order would give back more than it cost: VT001
-- more_than_paid.
--
-- Runs after post_entry.sql has locked the wallet, so the outcomes of one order wait for each other,
-- and after outcomes.sql has closed the case of the entry.
CREATE OR REPLACE FUNCTION cases_check_given_back() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
DECLARE
    paid record;
BEGIN
    IF NEW.kind = 'credit' THEN
        SELECT id, total_price INTO paid FROM orders_order WHERE reference = NEW.order_reference;
    ELSE
        SELECT sale.id, sale.total_price INTO paid
          FROM cases_case AS item JOIN orders_order AS sale ON sale.id = item.paid_order_id
         WHERE item.id = substring(NEW.booking_reference FROM '[0-9]{1,18}$')::bigint;
    END IF;
    -- Money alone is the concern of wallets/sql/paid_back.sql.
    IF EXISTS (SELECT FROM cases_case WHERE paid_order_id = paid.id AND state = 'replaced')
       AND cases_given_back(paid.id) > paid.total_price THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'more_than_paid';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER cases_gives_back_at_most_what_was_paid
    AFTER INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.kind IN ('credit', 'replacement'))
    EXECUTE FUNCTION cases_check_given_back();
