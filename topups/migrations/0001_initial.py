import uuid
from pathlib import Path

import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import core.inputs
from core.database.migrations import install_sql


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("catalogue", "0001_initial"),
    ]

    operations = [
        # A check of the tables below calls this function.
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "statuses.sql": "11c0e1ef8272874bd5b669c42c2ad00c50ae3a0e0ee824a2d100cc96e9e9569d",
            },
        ),
        migrations.CreateModel(
            name="TopUpProduct",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
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
                ("price", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "available_stock",
                    models.PositiveIntegerField(
                        blank=True, help_text="Number in stock; empty means not counted.", null=True
                    ),
                ),
                ("active", models.BooleanField(default=True)),
                ("published", models.BooleanField(default=True)),
                (
                    "external_provider",
                    models.CharField(
                        blank=True,
                        help_text="The provider that delivers it instead of us. If set, it is not sold here.",
                        max_length=100,
                        null=True,
                    ),
                ),
                (
                    "announce",
                    models.BooleanField(
                        default=False,
                        help_text="Orders may be announced on the messaging platform.",
                    ),
                ),
                (
                    "category",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="topup_products",
                        to="catalogue.category",
                    ),
                ),
                (
                    "next_price",
                    models.DecimalField(decimal_places=4, editable=False, max_digits=20, null=True),
                ),
                ("next_price_from", models.DateTimeField(editable=False, null=True)),
                (
                    "promised_minutes",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Minutes from the purchase to the delivery. Empty: nothing is promised. Merchants do not see it.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
            ],
            options={
                "verbose_name": "top-up product",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                        name="topups_product_currency_is_a_code",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("price__gt", 0), ("price__lt", 100000000000000)),
                        name="topups_product_price_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("external_provider", ""), _negated=True),
                        name="topups_product_provider_is_named",
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
                        name="topups_product_next_price_has_limits_and_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("promised_minutes", None),
                            ("promised_minutes__gte", 1),
                            _connector="OR",
                        ),
                        name="topups_product_promise_is_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Fulfilment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("order_reference", models.CharField(max_length=26, unique=True)),
                ("player_id", models.CharField(max_length=64)),
                ("fields", models.JSONField(default=list)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
                (
                    "takes_stock",
                    models.BooleanField(help_text="Whether it was taken from counted stock."),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("pending_review", "Pending review"),
                            ("processing", "Processing"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("claimed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "failure_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("wrong_id", "Wrong player ID"),
                            ("no_stock", "No stock"),
                            ("fulfilment_failed", "Fulfilment failed"),
                        ],
                        max_length=32,
                        null=True,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                ("refund_due_at", models.DateTimeField(blank=True, null=True)),
                ("refunded_at", models.DateTimeField(blank=True, null=True)),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="fulfilments",
                        to="accounts.account",
                    ),
                ),
                (
                    "claimed_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claimed_fulfilments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="fulfilments",
                        to="topups.topupproduct",
                    ),
                ),
                (
                    "message",
                    models.CharField(
                        blank=True,
                        db_default="",
                        editable=False,
                        max_length=500,
                        verbose_name="message for the merchant",
                    ),
                ),
                (
                    "reject_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("wrong_id", "Wrong player ID"),
                            ("no_stock", "No stock"),
                            ("other", "Other reason"),
                        ],
                        db_default="",
                        editable=False,
                        max_length=16,
                    ),
                ),
            ],
            options={
                "verbose_name": "top-up",
                "permissions": [
                    ("fulfil", "Can claim, complete, reject and send to review"),
                    ("decide_review", "Can decide orders in review and act on others' claims"),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("status__in", ["pending", "processing", "pending_review"])
                        ),
                        fields=["created_at"],
                        name="topups_fulfilment_open",
                    ),
                    models.Index(
                        condition=models.Q(("refund_due_at__isnull", False), ("refunded_at", None)),
                        fields=["refund_due_at"],
                        name="topups_fulfilment_refund_due",
                    ),
                    models.Index(
                        condition=models.Q(("refund_due_at__isnull", False), ("refunded_at", None)),
                        fields=["account"],
                        name="topups_fulfilment_due_of_acct",
                    ),
                    models.Index(
                        condition=models.Q(("closed_at__isnull", False)),
                        fields=["closed_at"],
                        name="topups_fulfilment_ended",
                    ),
                    models.Index(
                        condition=models.Q(("claimed_by__isnull", False)),
                        fields=["claimed_by"],
                        name="topups_fulfilment_claimed",
                    ),
                    models.Index(
                        condition=models.Q(("status", "failed")),
                        fields=["account", "id"],
                        name="topups_fulfilment_failed",
                    ),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["player_id"],
                        name="topups_fulfilment_by_player",
                        opclasses=[
                            "text_bloom_ops (n_distinct_per_range = 700, false_positive_rate = 0.0002)"
                        ],
                        pages_per_range=16,
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)),
                        name="topups_fulfilment_amount_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Func(
                            "status",
                            "failure_reason",
                            "claimed_by",
                            "closed_at",
                            "refund_due_at",
                            "refunded_at",
                            function="topups_agrees_with_status",
                            output_field=models.BooleanField(),
                        ),
                        name="topups_fulfilment_agrees_with_its_status",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FulfilmentEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("move", models.CharField(max_length=32)),
                (
                    "from_status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("pending_review", "Pending review"),
                            ("processing", "Processing"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                        ],
                        max_length=16,
                        null=True,
                    ),
                ),
                (
                    "to_status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("pending_review", "Pending review"),
                            ("processing", "Processing"),
                            ("completed", "Completed"),
                            ("failed", "Failed"),
                        ],
                        max_length=16,
                    ),
                ),
                ("actor", models.CharField(max_length=200)),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("api", "API"),
                            ("admin", "Admin"),
                            ("command", "Command"),
                            ("telegram", "Telegram"),
                            ("system", "System"),
                        ],
                        max_length=16,
                    ),
                ),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "fulfilment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="events",
                        to="topups.fulfilment",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="TopUpField",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "number",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)], verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("label", models.CharField(max_length=200)),
                (
                    "type",
                    models.CharField(
                        choices=[("text", "Text"), ("number", "Number"), ("dropdown", "Dropdown")],
                        max_length=16,
                    ),
                ),
                ("required", models.BooleanField(default=True)),
                ("position", models.PositiveSmallIntegerField(default=0)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="fields",
                        to="topups.topupproduct",
                    ),
                ),
            ],
            options={
                "verbose_name": "top-up field",
                "ordering": ["position", "number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("product", "number"), name="topups_field_number_once"
                    ),
                    models.UniqueConstraint(
                        fields=("product", "name"), name="topups_field_name_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("type__in", ["text", "number", "dropdown"])),
                        name="topups_field_type_is_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TopUpPriceChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("before", models.DecimalField(decimal_places=4, max_digits=20)),
                ("after", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("changed_by", models.CharField(max_length=200)),
                ("asked_by", models.CharField(db_default="", max_length=150)),
                (
                    "product",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="price_changes",
                        to="topups.topupproduct",
                    ),
                ),
                ("starts_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["product", "id"], name="topups_price_change_product"),
                    models.Index(fields=["changed_at"], name="topups_price_change_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="FieldId",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=100)),
                (
                    "product",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="field_ids",
                        to="topups.topupproduct",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("product", "number"), name="topups_field_id_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="TopUpFieldOption",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "value",
                    models.CharField(max_length=255, validators=[core.inputs.validate_not_blank]),
                ),
                ("label", models.CharField(blank=True, max_length=200, null=True)),
                ("position", models.PositiveSmallIntegerField(default=0)),
                (
                    "field",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="options",
                        to="topups.topupfield",
                    ),
                ),
            ],
            options={
                "verbose_name": "top-up field option",
                "ordering": ["position", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("field", "value"), name="topups_option_value_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryProof",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("transaction_number", models.CharField(blank=True, max_length=100)),
                (
                    "added_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "added_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "fulfilment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proofs",
                        to="topups.fulfilment",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("fulfilment", "token"), name="topups_proof_once_per_form"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("content_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField(help_text="In bytes.")),
                ("sealed", models.BinaryField()),
                (
                    "proof",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="file",
                        to="topups.deliveryproof",
                    ),
                ),
            ],
            options={
                "abstract": False,
                "default_permissions": (),
            },
        ),
    ]
