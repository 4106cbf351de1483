"""Keeps what was paid back on a day, so that the overview of staff shows net sales."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0014_total_paybacks"),
    ]

    operations = [
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {"paybacks.sql": "b86ad2515f59da379dbfe8e363773eaf6e6276a4109feb7257bb47569ac348e5"},
        ),
        # The trigger's lock keeps the task that counts margins waiting meanwhile.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            """
            INSERT INTO orders_dailypayback
                   (day, currency, account_id, shelf_id, topup_product_id, amount)
            SELECT day, currency, account_id, shelf_id, topup_product_id, sum(paid_back)
              FROM orders_dailymargin AS margin
              JOIN accounts_account AS account ON account.id = account_id
             WHERE paid_back <> 0
             GROUP BY day, currency, GROUPING SETS ((account_id), (shelf_id, topup_product_id))
            """,
            migrations.RunSQL.noop,
        ),
    ]
