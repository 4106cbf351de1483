"""Adds the sums of margins without accounts, and of each account. The next migration fills them, when
the service has its rights."""

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
            name="DailyMarginSum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("quantity", models.PositiveBigIntegerField()),
                ("sold", models.DecimalField(decimal_places=4, max_digits=20)),
                ("paid_back", models.DecimalField(decimal_places=4, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
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
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.batch",
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
                "abstract": False,
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("paid_back", 0), _negated=True),
                        fields=["day"],
                        name="orders_daily_paid_back",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "day", "currency", "shelf", "topup_product", "batch"),
                        name="orders_dailymarginsum_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("account__isnull", False),
                                ("batch", None),
                                ("shelf", None),
                                ("topup_product", None),
                            ),
                            models.Q(
                                ("account", None), ("shelf__isnull", False), ("topup_product", None)
                            ),
                            models.Q(
                                ("account", None),
                                ("batch", None),
                                ("shelf", None),
                                ("topup_product__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="orders_dailymarginsum_of_one_thing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthlyMarginSum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("quantity", models.PositiveBigIntegerField()),
                ("sold", models.DecimalField(decimal_places=4, max_digits=20)),
                ("paid_back", models.DecimalField(decimal_places=4, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
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
                    "batch",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.batch",
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
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "day", "currency", "shelf", "topup_product", "batch"),
                        name="orders_monthlymarginsum_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("account__isnull", False),
                                ("batch", None),
                                ("shelf", None),
                                ("topup_product", None),
                            ),
                            models.Q(
                                ("account", None), ("shelf__isnull", False), ("topup_product", None)
                            ),
                            models.Q(
                                ("account", None),
                                ("batch", None),
                                ("shelf", None),
                                ("topup_product__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="orders_monthlymarginsum_of_one_thing",
                    ),
                ],
            },
        ),
    ]
