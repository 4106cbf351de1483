-- Adds what a statement changed in daily sales to the totals of accounts and things, which the
-- overview of staff reads (orders/sales.py).
CREATE OR REPLACE FUNCTION orders_add_to_totals() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    less text := '';
BEGIN
    IF TG_OP = 'UPDATE' THEN
        less := 'UNION ALL
            SELECT day, account_id, shelf_id, topup_product_id, -orders, -amount FROM removed';
    END IF;
    EXECUTE format('INSERT INTO orders_dailytotal AS stored
               (day, currency, account_id, shelf_id, topup_product_id, orders, amount)
        SELECT day, currency, account_id, shelf_id, topup_product_id, sum(orders), sum(amount)
          FROM (SELECT day, account_id, shelf_id, topup_product_id, orders, amount
                  FROM added %s) AS more
          JOIN accounts_account AS account ON account.id = account_id
         GROUP BY day, currency, GROUPING SETS ((account_id), (shelf_id, topup_product_id))
            ON CONFLICT (day, currency, account_id, shelf_id, topup_product_id) DO UPDATE
           SET orders = stored.orders + EXCLUDED.orders, amount = stored.amount + EXCLUDED.amount
        ', less);
    RETURN NULL;
END $$;

-- Inserts and updates need a trigger each: an insert has no OLD TABLE.
CREATE OR REPLACE TRIGGER orders_sales_have_totals
    AFTER INSERT ON orders_dailysales REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_totals();

CREATE OR REPLACE TRIGGER orders_changed_sales_have_totals
    AFTER UPDATE ON orders_dailysales REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION orders_add_to_totals();
