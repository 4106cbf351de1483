-- Adds what a statement changed in orders_dailymargin or orders_monthlymargin to the sums of accounts
-- and things, in orders_dailymarginsum or orders_monthlymarginsum. Reports without an account read
-- those of things (orders/margins/report.py), and the overview of staff reads what was paid back
-- (orders/sales.py).
CREATE OR REPLACE FUNCTION orders_add_to_margin_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    less text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        less := 'UNION ALL
            SELECT day, account_id, shelf_id, topup_product_id, batch_id, -quantity, -sold,
                   -paid_back
              FROM removed';
    END IF;
    EXECUTE format('INSERT INTO %I AS stored
               (day, currency, account_id, shelf_id, topup_product_id, batch_id, quantity, sold,
                paid_back)
        SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id, sum(quantity),
               sum(sold), sum(paid_back)
          FROM (SELECT day, account_id, shelf_id, topup_product_id, batch_id, quantity, sold,
                       paid_back
                  FROM added %s) AS more
          JOIN accounts_account AS account ON account.id = account_id
         GROUP BY day, currency,
                  GROUPING SETS ((account_id), (shelf_id, topup_product_id, batch_id))
            ON CONFLICT (account_id, day, currency, shelf_id, topup_product_id, batch_id)
            DO UPDATE
           SET quantity = stored.quantity + EXCLUDED.quantity,
               sold = stored.sold + EXCLUDED.sold,
               paid_back = stored.paid_back + EXCLUDED.paid_back
        ', TG_TABLE_NAME || 'sum', less);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER orders_margins_of_days_added
    AFTER INSERT ON orders_dailymargin REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_margin_sums();

CREATE OR REPLACE TRIGGER orders_margins_of_days_changed
    AFTER UPDATE ON orders_dailymargin REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_margin_sums();

CREATE OR REPLACE TRIGGER orders_margins_of_months_added
    AFTER INSERT ON orders_monthlymargin REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_margin_sums();

CREATE OR REPLACE TRIGGER orders_margins_of_months_changed
    AFTER UPDATE ON orders_monthlymargin REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_margin_sums();
