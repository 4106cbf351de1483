from decimal import Decimal

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
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
                    models.Index(fields=["account", "day"], name="figures_daily_sales_account")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "account", "shelf", "topup_product"),
                        name="figures_daily_sales_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product__isnull", False)),
                            _connector="OR",
                        ),
                        name="figures_daily_sales_of_one_thing",
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
                        fields=("currency", "into", "day"), name="figures_exchange_rate_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate__gt", 0)),
                        name="figures_exchange_rate_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("currency__regex", "^[A-Z]{3}$"),
                            ("into__regex", "^[A-Z]{3}$"),
                            models.Q(("currency", models.F("into")), _negated=True),
                        ),
                        name="figures_exchange_rate_is_of_two_currencies",
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
                        name="figures_dailymargin_once",
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
                        name="figures_dailymargin_of_one_thing",
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
                "indexes": [models.Index(fields=["day"], name="figures_daily_spending_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("client", "day"), name="figures_daily_spending_once"
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
                    "counted_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
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
                        name="figures_daily_stock_once",
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
                        name="figures_monthlymargin_once",
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
                        name="figures_monthlymargin_of_one_thing",
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
                        fields=("wallet", "kind"), name="figures_counted_payback_once"
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
                        name="figures_stock_threshold_of_one_thing",
                        violation_error_message="Choose a shelf or a top-up product, not both.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("days", None), ("stock__isnull", False)),
                            models.Q(("days__isnull", False), ("days__gte", 0)),
                            _connector="OR",
                        ),
                        name="figures_stock_threshold_has_a_limit",
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
                ("quantity", models.PositiveBigIntegerField()),
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
                    models.Index(fields=["account", "day"], name="figures_daily_total_account"),
                    models.Index(
                        condition=models.Q(
                            ("account", None), ("shelf", None), ("topup_product", None)
                        ),
                        fields=["day"],
                        name="figures_daily_total_of_all",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "currency", "account", "shelf", "topup_product"),
                        name="figures_daily_total_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("account", None), ("shelf", None)),
                            models.Q(("account", None), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product", None)),
                            _connector="OR",
                        ),
                        name="figures_daily_total_of_one_thing",
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
                        name="figures_daily_paid_back",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "day", "currency", "shelf", "topup_product", "batch"),
                        name="figures_dailymarginsum_once",
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
                        name="figures_dailymarginsum_of_one_thing",
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
                        name="figures_monthlymarginsum_once",
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
                        name="figures_monthlymarginsum_of_one_thing",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EarlierList",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("low_prices", models.PositiveIntegerField(default=0)),
                ("until", models.DateTimeField()),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.account",
                    ),
                ),
                (
                    "price_list",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.pricelist",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="AgreedFall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                (
                    "price_list",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.pricelist",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "topup_product",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="topups.topupproduct",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product__isnull", False)),
                            _connector="OR",
                        ),
                        name="figures_agreedfall_of_one_thing",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EarlierTerms",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("category", models.BigIntegerField(null=True)),
                ("step", models.PositiveIntegerField()),
                ("until", models.DateTimeField()),
                (
                    "shelf",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "topup_product",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="topups.topupproduct",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("shelf__isnull", False), ("topup_product", None)),
                            models.Q(("shelf", None), ("topup_product__isnull", False)),
                            _connector="OR",
                        ),
                        name="figures_earlierterms_of_one_thing",
                    )
                ],
            },
        ),
    ]
