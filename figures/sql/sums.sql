-- Adds what a statement changed in a table of figures to the sums of accounts and of things, which the
-- overview of staff (figures/sales.py) and reports without an account (figures/margins.py) read. The
-- arguments of the trigger are the table of sums, the columns that name a thing, and the columns that
-- are added up; a fourth one says that the table has sums of everything, too.
CREATE OR REPLACE FUNCTION figures_add_to_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    sums text := TG_ARGV[0];
    thing text := TG_ARGV[1];
    numbers text[] := string_to_array(TG_ARGV[2], ', ');
    less text := '';
    everything text := '';
BEGIN
    IF TG_NARGS > 3 THEN
        everything := ', ()';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        less := format('UNION ALL SELECT day, account_id, %s, %s FROM removed', thing,
                       (SELECT string_agg('-' || name, ', ') FROM unnest(numbers) AS name));
    END IF;
    EXECUTE format(
        'INSERT INTO %1$I AS stored (day, currency, account_id, %2$s, %3$s)
         SELECT day, currency, account_id, %2$s, %4$s
           FROM (SELECT day, account_id, %2$s, %3$s FROM added %5$s) AS more
           JOIN accounts_account AS account ON account.id = account_id
          GROUP BY day, currency, GROUPING SETS ((account_id), (%2$s) %7$s)
             ON CONFLICT (day, currency, account_id, %2$s) DO UPDATE SET %6$s',
        sums, thing, TG_ARGV[2],
        (SELECT string_agg(format('sum(%s)', name), ', ') FROM unnest(numbers) AS name),
        less,
        (SELECT string_agg(format('%1$s = stored.%1$s + EXCLUDED.%1$s', name), ', ')
           FROM unnest(numbers) AS name),
        everything
    );
    RETURN NULL;
END $$;

-- Inserts and updates need a trigger each: an insert has no OLD TABLE.
CREATE OR REPLACE TRIGGER figures_sales_added
    AFTER INSERT ON figures_dailysales REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_dailytotal', 'shelf_id, topup_product_id', 'orders, quantity, amount', 'everything');

CREATE OR REPLACE TRIGGER figures_sales_changed
    AFTER UPDATE ON figures_dailysales REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_dailytotal', 'shelf_id, topup_product_id', 'orders, quantity, amount', 'everything');

CREATE OR REPLACE TRIGGER figures_margins_of_days_added
    AFTER INSERT ON figures_dailymargin REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_dailymarginsum', 'shelf_id, topup_product_id, batch_id', 'quantity, sold, paid_back');

CREATE OR REPLACE TRIGGER figures_margins_of_days_changed
    AFTER UPDATE ON figures_dailymargin REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_dailymarginsum', 'shelf_id, topup_product_id, batch_id', 'quantity, sold, paid_back');

CREATE OR REPLACE TRIGGER figures_margins_of_months_added
    AFTER INSERT ON figures_monthlymargin REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_monthlymarginsum', 'shelf_id, topup_product_id, batch_id', 'quantity, sold, paid_back');

CREATE OR REPLACE TRIGGER figures_margins_of_months_changed
    AFTER UPDATE ON figures_monthlymargin REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION figures_add_to_sums(
        'figures_monthlymarginsum', 'shelf_id, topup_product_id, batch_id', 'quantity, sold, paid_back');
