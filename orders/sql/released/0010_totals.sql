-- Adds the difference of a row of daily sales to the totals of its account and of its thing, which
-- the overview of staff reads (orders/sales.py).
CREATE OR REPLACE FUNCTION orders_add_to_totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO orders_dailytotal AS stored
           (day, currency, account_id, shelf_id, topup_product_id, orders, amount)
    SELECT NEW.day, account.currency, part.account_id, part.shelf_id, part.topup_product_id,
           NEW.orders - coalesce(OLD.orders, 0), NEW.amount - coalesce(OLD.amount, 0)
      FROM accounts_account AS account,
           (VALUES (NEW.account_id, NULL, NULL), (NULL, NEW.shelf_id, NEW.topup_product_id))
               AS part (account_id, shelf_id, topup_product_id)
     WHERE account.id = NEW.account_id
        ON CONFLICT (day, currency, account_id, shelf_id, topup_product_id) DO UPDATE
       SET orders = stored.orders + EXCLUDED.orders, amount = stored.amount + EXCLUDED.amount;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER orders_sales_have_totals
    AFTER INSERT OR UPDATE ON orders_dailysales
    FOR EACH ROW EXECUTE FUNCTION orders_add_to_totals();
