import django.contrib.postgres.constraints
import django.contrib.postgres.fields.ranges
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.datetime
from django.db import migrations, models

import catalogue.reference_format


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Category",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("active", models.BooleanField(default=True)),
            ],
            options={
                "verbose_name_plural": "categories",
            },
        ),
        migrations.CreateModel(
            name="CodeHold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                (
                    "held_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("held_by", models.CharField(max_length=200)),
                ("voided_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "permissions": [("hold_codes", "Can hold, release and void voucher codes")],
            },
        ),
        migrations.CreateModel(
            name="Product",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                (
                    "type",
                    models.CharField(
                        blank=True,
                        choices=[("voucher", "Voucher"), ("top_up", "Top-up")],
                        max_length=16,
                        null=True,
                    ),
                ),
                (
                    "currency",
                    models.CharField(
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                ("active", models.BooleanField(default=True)),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="products",
                        to="catalogue.category",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                        name="catalogue_product_currency_is_a_code",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("type", None), ("type__in", ["voucher", "top_up"]), _connector="OR"
                        ),
                        name="catalogue_product_type_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Variation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("active", models.BooleanField(default=True)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="variations",
                        to="catalogue.product",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("product", "id"), name="catalogue_variation_product_and_id"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Shelf",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "price",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        help_text="Price of one unit. Empty means not for sale.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                (
                    "quantity_step",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="Number of codes in one unit.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
                ("available_stock", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="shelves",
                        to="catalogue.product",
                    ),
                ),
                (
                    "variation",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="shelf",
                        to="catalogue.variation",
                    ),
                ),
                (
                    "next_price",
                    models.DecimalField(decimal_places=4, editable=False, max_digits=20, null=True),
                ),
                ("next_price_from", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name_plural": "shelves",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("variation", None)),
                        fields=("product",),
                        name="catalogue_shelf_one_own_per_product",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("price", None), ("price__gt", 0), _connector="OR"),
                        name="catalogue_shelf_price_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("price", None), ("price__lt", 100000000000000), _connector="OR"
                        ),
                        name="catalogue_shelf_price_has_a_limit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quantity_step__gte", 1)),
                        name="catalogue_shelf_quantity_step_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("quantity_step__lte", 100)),
                        name="catalogue_shelf_quantity_step_has_a_limit",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("next_price", None), ("next_price_from", None)),
                            models.Q(
                                ("next_price__gt", 0),
                                ("next_price__lt", 100000000000000),
                                ("next_price_from__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="catalogue_shelf_next_price_has_limits_and_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReferenceLink",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "reference",
                    models.CharField(
                        max_length=64, validators=[catalogue.reference_format.validate_reference]
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="references",
                        to="accounts.account",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="references",
                        to="catalogue.shelf",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "reference"), name="catalogue_reference_names_one_shelf"
                    ),
                    models.UniqueConstraint(
                        fields=("account", "shelf"), name="catalogue_shelf_has_one_reference"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ShelfPriceChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("before", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                ("after", models.DecimalField(decimal_places=4, max_digits=20, null=True)),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("changed_by", models.CharField(max_length=200)),
                ("asked_by", models.CharField(db_default="", max_length=150)),
                (
                    "shelf",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="price_changes",
                        to="catalogue.shelf",
                    ),
                ),
                ("starts_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["shelf", "id"], name="catalogue_price_change_shelf"),
                    models.Index(fields=["changed_at"], name="catalogue_price_change_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="VoucherCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.BigIntegerField()),
                ("sealed", models.BinaryField()),
                ("digest", models.BinaryField()),
                ("order_id", models.BigIntegerField(editable=False, null=True)),
                (
                    "imported_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "hold",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="codes",
                        to="catalogue.codehold",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="codes",
                        to="catalogue.shelf",
                    ),
                ),
                ("expires_on", models.DateField(editable=False, null=True)),
            ],
            options={
                "permissions": [("reveal_vouchercode", "Can see a voucher code in clear text")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("hold", None), ("order_id", None)),
                        fields=["shelf", "position"],
                        name="catalogue_code_in_stock",
                    ),
                    models.Index(
                        condition=models.Q(("hold__isnull", False)),
                        fields=["hold", "shelf", "id"],
                        name="catalogue_code_of_hold",
                    ),
                    models.Index(
                        condition=models.Q(("order_id__isnull", False)),
                        fields=["order_id", "position"],
                        name="catalogue_code_of_order",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("expires_on__isnull", False), ("hold", None), ("order_id", None)
                        ),
                        fields=["expires_on"],
                        name="catalogue_code_expiring",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("order_id", None), ("hold", None), _connector="OR"),
                        name="catalogue_code_sold_is_not_held",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CodeDigest",
            fields=[
                ("digest", models.UUIDField(primary_key=True, serialize=False)),
                ("code_id", models.BigIntegerField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first_code", models.BigIntegerField(editable=False, unique=True)),
                ("last_code", models.BigIntegerField(editable=False, unique=True)),
                ("supplier", models.CharField(blank=True, max_length=200)),
                (
                    "invoice",
                    models.CharField(blank=True, max_length=200, verbose_name="invoice number"),
                ),
                (
                    "unit_cost",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        help_text="The cost of one code.",
                        max_digits=20,
                        null=True,
                    ),
                ),
                (
                    "cost_currency",
                    models.CharField(
                        blank=True,
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                ("file_digest", models.BinaryField()),
                ("imported_by", models.CharField(editable=False, max_length=200)),
                (
                    "imported_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="batches",
                        to="catalogue.shelf",
                    ),
                ),
                (
                    "expires_on",
                    models.DateField(
                        editable=False,
                        help_text="The last day on which these codes may be sold, in UTC. Empty if they do not expire.",
                        null=True,
                    ),
                ),
                (
                    "taken_back_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="Its codes were deleted then.",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("first_code__lte", models.F("last_code"))),
                        name="catalogue_batch_has_codes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("cost_currency", ""), ("unit_cost", None)),
                            models.Q(("cost_currency__regex", "^[A-Z]{3}$"), ("unit_cost__gte", 0)),
                            _connector="OR",
                        ),
                        name="catalogue_batch_cost_has_a_currency",
                        violation_error_message="Enter a cost of at least 0 and its currency, or leave both empty.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PriceList",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200, unique=True)),
                (
                    "currency",
                    models.CharField(
                        help_text="Only accounts in this currency can have the list.",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
            ],
            options={
                "permissions": [("assign_pricelist", "Can choose the price list of an account")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                        name="catalogue_price_list_currency_is_a_code",
                    ),
                    models.UniqueConstraint(
                        fields=("id", "currency"), name="catalogue_price_list_id_and_currency"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PriceListEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="price_entries",
                        to="catalogue.category",
                    ),
                ),
                (
                    "price_list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="catalogue.pricelist",
                    ),
                ),
                (
                    "product",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="price_entries",
                        to="catalogue.product",
                    ),
                ),
                (
                    "shelf",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="price_entries",
                        to="catalogue.shelf",
                    ),
                ),
                ("topup_product_id", models.BigIntegerField(blank=True, null=True)),
                (
                    "target",
                    models.GeneratedField(
                        db_persist=True,
                        expression=django.db.models.functions.comparison.Coalesce(
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("shelf"), "*", models.Value(8)
                                ),
                                "+",
                                models.Value(4),
                            ),
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("topup_product_id"), "*", models.Value(8)
                                ),
                                "+",
                                models.Value(3),
                            ),
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("product"), "*", models.Value(8)
                                ),
                                "+",
                                models.Value(2),
                            ),
                            django.db.models.expressions.CombinedExpression(
                                django.db.models.expressions.CombinedExpression(
                                    models.F("category"), "*", models.Value(8)
                                ),
                                "+",
                                models.Value(1),
                            ),
                            models.Value(0),
                        ),
                        output_field=models.BigIntegerField(),
                    ),
                ),
                ("for_sale", models.BooleanField(default=True)),
                (
                    "price",
                    models.DecimalField(blank=True, decimal_places=4, max_digits=20, null=True),
                ),
                (
                    "percent_off",
                    models.DecimalField(blank=True, decimal_places=2, max_digits=5, null=True),
                ),
                (
                    "valid_from",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("valid_until", models.DateTimeField(blank=True, null=True)),
                ("added_by", models.CharField(max_length=200)),
                ("ended_by", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "verbose_name": "price list entry",
                "verbose_name_plural": "price list entries",
                "indexes": [
                    models.Index(
                        fields=["price_list", "target", "valid_from"],
                        name="catalogue_price_entry_lookup",
                    ),
                    models.Index(fields=["price_list", "id"], name="catalogue_price_entry_list"),
                    models.Index(
                        fields=["price_list", "valid_until"], name="catalogue_price_entry_open"
                    ),
                    models.Index(fields=["shelf", "id"], name="catalogue_price_entry_shelf"),
                    models.Index(
                        fields=["topup_product_id", "id"], name="catalogue_price_entry_topup"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("category", None), ("product", None), ("shelf", None)),
                            models.Q(
                                ("category", None), ("product", None), ("topup_product_id", None)
                            ),
                            models.Q(
                                ("category", None), ("shelf", None), ("topup_product_id", None)
                            ),
                            models.Q(
                                ("product", None), ("shelf", None), ("topup_product_id", None)
                            ),
                            _connector="OR",
                        ),
                        name="catalogue_price_entry_has_one_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("percent_off", None), ("price", None)),
                            models.Q(("for_sale", True), ("price", None)),
                            models.Q(("for_sale", True), ("percent_off", None)),
                            _connector="OR",
                        ),
                        name="catalogue_price_entry_says_one_thing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("price", None),
                            models.Q(("price__gt", 0), ("price__lt", 100000000000000)),
                            _connector="OR",
                        ),
                        name="catalogue_price_entry_price_has_limits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("price", None), models.Q(("target", 0), _negated=True), _connector="OR"
                        ),
                        name="catalogue_price_entry_price_has_a_target",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("percent_off", None),
                            models.Q(("percent_off__gt", 0), ("percent_off__lt", 100)),
                            _connector="OR",
                        ),
                        name="catalogue_price_entry_percent_has_limits",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("valid_until", None),
                            ("valid_until__gt", models.F("valid_from")),
                            _connector="OR",
                        ),
                        name="catalogue_price_entry_ends_after_its_start",
                    ),
                    django.contrib.postgres.constraints.ExclusionConstraint(
                        expressions=[
                            (
                                models.Func(
                                    models.F("price_list"),
                                    models.F("price_list"),
                                    models.Value("[]"),
                                    function="int8range",
                                    output_field=django.contrib.postgres.fields.ranges.BigIntegerRangeField(),
                                ),
                                "&&",
                            ),
                            (
                                models.Func(
                                    models.F("target"),
                                    models.F("target"),
                                    models.Value("[]"),
                                    function="int8range",
                                    output_field=django.contrib.postgres.fields.ranges.BigIntegerRangeField(),
                                ),
                                "&&",
                            ),
                            (
                                models.Func(
                                    models.F("valid_from"),
                                    models.F("valid_until"),
                                    function="tstzrange",
                                    output_field=django.contrib.postgres.fields.ranges.DateTimeRangeField(),
                                ),
                                "&&",
                            ),
                        ],
                        name="catalogue_price_entries_do_not_overlap",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TraceProgress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("last_code", models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="CodeTrace",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "code_id",
                        "digest",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("digest", models.BigIntegerField()),
                (
                    "code",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="traces",
                        to="catalogue.vouchercode",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["digest"], name="catalogue_trace_of_text")],
            },
        ),
    ]
