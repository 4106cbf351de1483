from decimal import Decimal

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.lookups
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("catalogue", "0001_initial"),
        ("topups", "0001_initial"),
        ("wallets", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ClientCounter",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to="accounts.apiclient",
                    ),
                ),
                ("orders", models.PositiveBigIntegerField()),
                ("limited", models.BooleanField(db_default=False)),
            ],
        ),
        migrations.CreateModel(
            name="CountedSales",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to="accounts.apiclient",
                    ),
                ),
                ("orders", models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="LostPurchase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reference", models.CharField(max_length=26, unique=True)),
                ("total_price", models.DecimalField(decimal_places=4, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
                ("sold_at", models.DateTimeField()),
                (
                    "found_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.apiclient",
                    ),
                ),
                (
                    "hold",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.codehold",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DailySales",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("orders", models.PositiveIntegerField()),
                ("quantity", models.PositiveBigIntegerField()),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="daily_sales",
                        to="accounts.account",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="daily_sales",
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
                "verbose_name_plural": "daily sales",
                "indexes": [
                    models.Index(fields=["account", "day"], name="orders_daily_sales_account")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "account", "shelf", "topup_product"),
                        name="orders_daily_sales_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product__isnull", False)),
                            _connector="OR",
                        ),
                        name="orders_daily_sales_of_one_thing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reference", models.CharField(max_length=26, unique=True)),
                ("number", models.PositiveBigIntegerField()),
                ("quantity", models.PositiveSmallIntegerField()),
                ("units_per_sale", models.PositiveSmallIntegerField()),
                ("unit_price", models.DecimalField(decimal_places=4, max_digits=20)),
                ("total_price", models.DecimalField(decimal_places=4, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
                ("codes_mac", models.BinaryField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="accounts.apiclient",
                    ),
                ),
                (
                    "fulfilment",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="order",
                        to="topups.fulfilment",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="orders",
                        to="catalogue.shelf",
                    ),
                ),
                ("idempotency_key", models.CharField(editable=False, max_length=128, null=True)),
                ("case_id", models.BigIntegerField(editable=False, null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("fulfilment", None), ("shelf__isnull", False)),
                            models.Q(
                                ("fulfilment__isnull", False),
                                ("quantity", 1),
                                ("shelf", None),
                                ("units_per_sale", 1),
                            ),
                            _connector="OR",
                        ),
                        name="orders_order_sells_codes_or_a_topup",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("codes_mac__isnull", False), ("shelf__isnull", False)),
                            models.Q(("codes_mac", None), ("shelf", None)),
                            _connector="OR",
                        ),
                        name="orders_order_is_bound_to_its_codes",
                    ),
                    models.UniqueConstraint(
                        fields=("client", "number"), name="orders_order_number"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("quantity__gte", 1),
                            ("quantity__lte", 100),
                            ("units_per_sale__gte", 1),
                            django.db.models.lookups.Exact(
                                django.db.models.functions.math.Mod(
                                    models.F("quantity"), models.F("units_per_sale")
                                ),
                                0,
                            ),
                        ),
                        name="orders_order_quantity_is_whole_units",
                    ),
                    models.CheckConstraint(
                        condition=django.db.models.lookups.Exact(
                            django.db.models.expressions.CombinedExpression(
                                models.F("total_price"), "*", models.F("units_per_sale")
                            ),
                            django.db.models.expressions.CombinedExpression(
                                models.F("unit_price"), "*", models.F("quantity")
                            ),
                        ),
                        name="orders_order_total_is_exact",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("case_id", None), ("total_price__gt", 0)),
                            models.Q(
                                ("case_id__isnull", False),
                                ("quantity", 1),
                                ("shelf__isnull", False),
                                ("total_price", 0),
                            ),
                            _connector="OR",
                        ),
                        name="orders_order_is_paid_or_replaces",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("case_id__isnull", False)),
                        fields=("case_id",),
                        name="orders_order_once_per_case",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                (
                    "lost_purchase",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to="orders.lostpurchase",
                    ),
                ),
                ("note", models.CharField(max_length=500)),
                ("settled_by", models.CharField(max_length=200)),
                (
                    "settled_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "debit",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="wallets.ledgerentry",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SpendingLimit",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="spending_limit",
                        serialize=False,
                        to="accounts.apiclient",
                    ),
                ),
                ("per_day", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("per_month", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("counted_after", models.PositiveBigIntegerField()),
                ("day", models.DateField(null=True)),
                ("spent_today", models.DecimalField(db_default=0, decimal_places=4, max_digits=20)),
                ("month", models.DateField(null=True)),
                (
                    "spent_this_month",
                    models.DecimalField(db_default=0, decimal_places=4, max_digits=20),
                ),
                ("refused_on", models.DateField(null=True)),
                ("reported_on", models.DateField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("per_day__gt", 0), ("per_day", None), _connector="OR"),
                            models.Q(("per_month__gt", 0), ("per_month", None), _connector="OR"),
                        ),
                        name="orders_spending_limit_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("per_day__isnull", False),
                            ("per_month__isnull", False),
                            _connector="OR",
                        ),
                        name="orders_spending_limit_is_given",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CountedMargin",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        serialize=False,
                        to="accounts.apiclient",
                    ),
                ),
                ("orders", models.PositiveBigIntegerField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ExchangeRate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "currency",
                    models.CharField(
                        help_text="What you pay with.",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                (
                    "into",
                    models.CharField(
                        help_text="What you sell in.",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                (
                    "day",
                    models.DateField(
                        help_text="The first day on which this rate counts, in UTC.",
                        verbose_name="from",
                    ),
                ),
                (
                    "rate",
                    models.DecimalField(
                        decimal_places=10,
                        help_text="How many units of the second currency one unit of the first one is worth.",
                        max_digits=20,
                        validators=[django.core.validators.MinValueValidator(Decimal("1E-10"))],
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "into", "day"), name="orders_exchange_rate_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate__gt", 0)), name="orders_exchange_rate_is_positive"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("currency__regex", "^[A-Z]{3}$"),
                            ("into__regex", "^[A-Z]{3}$"),
                            models.Q(("currency", models.F("into")), _negated=True),
                        ),
                        name="orders_exchange_rate_is_of_two_currencies",
                        violation_error_message="Choose two different currencies.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyMargin",
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
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
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
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "account", "shelf", "topup_product", "batch"),
                        name="orders_dailymargin_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(
                                ("batch", None), ("shelf", None), ("topup_product__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="orders_dailymargin_of_one_thing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailySpending",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.apiclient",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["day"], name="orders_daily_spending_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("client", "day"), name="orders_daily_spending_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyStock",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("codes", models.PositiveBigIntegerField()),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "shelf", "batch"),
                        name="orders_daily_stock_once",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthlyMargin",
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
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
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
                        fields=("day", "account", "shelf", "topup_product", "batch"),
                        name="orders_monthlymargin_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(
                                ("batch", None), ("shelf", None), ("topup_product__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="orders_monthlymargin_of_one_thing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CountedPayback",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("last_entry", models.BigIntegerField()),
                (
                    "wallet",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="wallets.wallet",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("wallet", "kind"), name="orders_counted_payback_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StockThreshold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "stock",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="A number of codes or top-ups.",
                        null=True,
                        verbose_name="fewer than",
                    ),
                ),
                (
                    "days",
                    models.DecimalField(
                        blank=True,
                        decimal_places=1,
                        help_text="At the pace of the last seven days.",
                        max_digits=6,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(Decimal("0"))],
                        verbose_name="enough for fewer days than",
                    ),
                ),
                (
                    "shelf",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "topup_product",
                    models.OneToOneField(
                        blank=True,
                        help_text="One with counted stock.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="topups.topupproduct",
                        verbose_name="top-up product",
                    ),
                ),
            ],
            options={
                "verbose_name": "stock limit",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product__isnull", False)),
                            _connector="OR",
                        ),
                        name="orders_stock_threshold_of_one_thing",
                        violation_error_message="Choose a shelf or a top-up product, not both.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("days", None), ("stock__isnull", False)),
                            models.Q(("days__isnull", False), ("days__gte", 0)),
                            _connector="OR",
                        ),
                        name="orders_stock_threshold_has_a_limit",
                        violation_error_message="Enter a number, or days, or both.",
                    ),
                ],
            },
        ),
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
