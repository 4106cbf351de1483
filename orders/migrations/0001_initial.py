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
    ]
