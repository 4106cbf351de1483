import django.core.validators
import django.db.models.deletion
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
                        validators=[django.core.validators.MinValueValidator(1)],
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
            ],
            options={
                "verbose_name_plural": "shelves",
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
        ),
        migrations.CreateModel(
            name="PriceChange",
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
                (
                    "shelf",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="price_changes",
                        to="catalogue.shelf",
                    ),
                ),
            ],
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
        ),
        migrations.AddField(
            model_name="shelf",
            name="variation",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="shelf",
                to="catalogue.variation",
            ),
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
                ("digest", models.BinaryField(unique=True)),
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
            ],
            options={
                "permissions": [("reveal_vouchercode", "Can see a voucher code in clear text")],
            },
        ),
        migrations.AddConstraint(
            model_name="product",
            constraint=models.CheckConstraint(
                condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                name="catalogue_product_currency_is_a_code",
            ),
        ),
        migrations.AddConstraint(
            model_name="product",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("type", None), ("type__in", ["voucher", "top_up"]), _connector="OR"
                ),
                name="catalogue_product_type_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="referencelink",
            constraint=models.UniqueConstraint(
                fields=("account", "reference"), name="catalogue_reference_names_one_shelf"
            ),
        ),
        migrations.AddConstraint(
            model_name="referencelink",
            constraint=models.UniqueConstraint(
                fields=("account", "shelf"), name="catalogue_shelf_has_one_reference"
            ),
        ),
        migrations.AddConstraint(
            model_name="variation",
            constraint=models.UniqueConstraint(
                fields=("product", "id"), name="catalogue_variation_product_and_id"
            ),
        ),
        migrations.AddConstraint(
            model_name="shelf",
            constraint=models.UniqueConstraint(
                condition=models.Q(("variation", None)),
                fields=("product",),
                name="catalogue_shelf_one_own_per_product",
            ),
        ),
        migrations.AddConstraint(
            model_name="shelf",
            constraint=models.CheckConstraint(
                condition=models.Q(("price", None), ("price__gt", 0), _connector="OR"),
                name="catalogue_shelf_price_is_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="shelf",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("price", None), ("price__lt", 100000000000000), _connector="OR"
                ),
                name="catalogue_shelf_price_has_a_limit",
            ),
        ),
        migrations.AddConstraint(
            model_name="shelf",
            constraint=models.CheckConstraint(
                condition=models.Q(("quantity_step__gte", 1)),
                name="catalogue_shelf_quantity_step_is_positive",
            ),
        ),
        migrations.AddIndex(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(("hold", None), ("order_id", None)),
                fields=["shelf", "position"],
                name="catalogue_code_in_stock",
            ),
        ),
        migrations.AddIndex(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(("hold__isnull", False)),
                fields=["hold"],
                name="catalogue_code_of_hold",
            ),
        ),
        migrations.AddIndex(
            model_name="vouchercode",
            index=models.Index(
                condition=models.Q(("order_id__isnull", False)),
                fields=["order_id", "position"],
                name="catalogue_code_of_order",
            ),
        ),
        migrations.AddConstraint(
            model_name="vouchercode",
            constraint=models.CheckConstraint(
                condition=models.Q(("order_id", None), ("hold", None), _connector="OR"),
                name="catalogue_code_sold_is_not_held",
            ),
        ),
    ]
