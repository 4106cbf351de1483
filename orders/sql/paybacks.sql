-- Adds each change of `paid_back` in orders_dailymargin to two sums of the day: that of the account,
-- and that of the thing. The overview of staff subtracts them from sales (orders/sales.py).
CREATE OR REPLACE FUNCTION orders_add_paid_back() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more numeric := NEW.paid_back - coalesce(OLD.paid_back, 0);
BEGIN
    IF more <> 0 THEN
        INSERT INTO orders_dailypayback AS stored
               (day, currency, account_id, shelf_id, topup_product_id, amount)
        SELECT NEW.day, account.currency, part.account_id, part.shelf_id, part.topup_product_id,
               more
          FROM accounts_account AS account,
               (VALUES (NEW.account_id, NULL, NULL), (NULL, NEW.shelf_id, NEW.topup_product_id))
                   AS part (account_id, shelf_id, topup_product_id)
         WHERE account.id = NEW.account_id
            ON CONFLICT (day, currency, account_id, shelf_id, topup_product_id) DO UPDATE
           SET amount = stored.amount + EXCLUDED.amount;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER orders_margins_have_paybacks
    AFTER INSERT OR UPDATE ON orders_dailymargin
    FOR EACH ROW EXECUTE FUNCTION orders_add_paid_back();
