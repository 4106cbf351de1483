"""Adds the sums of what was paid back on a day. The next migration fills them, when the service has
its rights."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0011_choose_languages"),
        ("catalogue", "0019_explain_limits"),
        ("orders", "0013_check_cases"),
        ("topups", "0015_check_old_statuses"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyPayback",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("currency", models.CharField(max_length=3)),
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
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["account", "day"], name="orders_daily_payback_account")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "currency", "account", "shelf", "topup_product"),
                        name="orders_daily_payback_once",
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
                        name="orders_daily_payback_of_one_thing",
                    ),
                ],
            },
        ),
    ]
