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
                ],
            },
        ),
    ]
