"""Keeps the sums of margins, so that reports without an account read no row of each account, and the
overview of staff shows net sales."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0014_total_margins"),
    ]

    operations = [
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {"margin_sums.sql": "38cd0078033c00ed079bcd55a56b24350c9c7bfffddac864258c3aa929f16ae5"},
        ),
        # The triggers' locks keep the task that counts margins waiting meanwhile.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            """
            INSERT INTO orders_dailymarginsum
                   (day, currency, account_id, shelf_id, topup_product_id, batch_id, quantity, sold,
                    paid_back)
            SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id, sum(quantity),
                   sum(sold), sum(paid_back)
              FROM orders_dailymargin AS margin
              JOIN accounts_account AS account ON account.id = account_id
             GROUP BY day, currency,
                      GROUPING SETS ((account_id), (shelf_id, topup_product_id, batch_id))
            """,
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            """
            INSERT INTO orders_monthlymarginsum
                   (day, currency, account_id, shelf_id, topup_product_id, batch_id, quantity, sold,
                    paid_back)
            SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id, sum(quantity),
                   sum(sold), sum(paid_back)
              FROM orders_monthlymargin AS margin
              JOIN accounts_account AS account ON account.id = account_id
             GROUP BY day, currency,
                      GROUPING SETS ((account_id), (shelf_id, topup_product_id, batch_id))
            """,
            migrations.RunSQL.noop,
        ),
    ]
