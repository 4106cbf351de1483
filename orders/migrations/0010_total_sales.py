"""The sums of the daily sales for the overview of staff."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_find_requests_by_value"),
        ("catalogue", "0018_delete_with_the_batch"),
        ("orders", "0009_limit_stock"),
        ("topups", "0009_find_players"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("currency", models.CharField(max_length=3)),
                ("orders", models.PositiveBigIntegerField()),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.account",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "topup_product",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="topups.topupproduct",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "day"], name="orders_daily_total_account")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "currency", "account", "shelf", "topup_product"),
                        name="orders_daily_total_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("account__isnull", False), ("shelf", None), ("topup_product", None)
                            ),
                            models.Q(
                                ("account", None), ("shelf__isnull", False), ("topup_product", None)
                            ),
                            models.Q(
                                ("account", None), ("shelf", None), ("topup_product__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="orders_daily_total_of_one_thing",
                    ),
                ],
            },
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "released/0010_totals.sql": "e38ed984c60d85bae2183b87c4cb87dfb4f5a661ca5c8b06689956a3a679becd"
            },
        ),
        # The trigger's lock keeps the task that counts sales waiting meanwhile.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            """
            INSERT INTO orders_dailytotal
                   (day, currency, account_id, shelf_id, topup_product_id, orders, amount)
            SELECT day, currency, account_id, shelf_id, topup_product_id, sum(orders), sum(amount)
              FROM orders_dailysales AS sales
              JOIN accounts_account AS account ON account.id = account_id
             GROUP BY day, currency, GROUPING SETS ((account_id), (shelf_id, topup_product_id))
            """,
            migrations.RunSQL.noop,
        ),
    ]
