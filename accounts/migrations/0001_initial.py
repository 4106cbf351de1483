import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import accounts.addresses
import accounts.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Account",
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
                ("enabled", models.BooleanField(default=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("price_list_id", models.BigIntegerField(editable=False, null=True)),
                ("needs_factors", models.BooleanField(db_default=False, editable=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                        name="accounts_account_currency_is_a_code",
                    )
                ],
                "indexes": [
                    models.Index(fields=["name"], name="accounts_account_by_name"),
                    models.Index(
                        condition=models.Q(("price_list_id__isnull", False)),
                        fields=["price_list_id"],
                        name="accounts_account_price_list",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiClient",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("enabled", models.BooleanField(default=True)),
                (
                    "rate_limit_per_minute",
                    models.PositiveIntegerField(
                        default=accounts.models.default_rate_limit,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "allowed_networks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            max_length=49, validators=[accounts.addresses.validate_network]
                        ),
                        blank=True,
                        default=list,
                        help_text="Addresses and networks that may call. Empty: calls are accepted from anywhere.",
                        size=None,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clients",
                        to="accounts.account",
                    ),
                ),
            ],
            options={
                "verbose_name": "API client",
                "indexes": [
                    models.Index(fields=["name"], name="accounts_apiclient_by_name"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("rate_limit_per_minute__gte", 1)),
                        name="accounts_apiclient_rate_limit_is_positive",
                    ),
                    models.UniqueConstraint(
                        models.F("account"),
                        django.db.models.functions.text.Upper("name"),
                        name="accounts_apiclient_name_once_per_account",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClientUse",
            fields=[
                (
                    "client",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="use",
                        serialize=False,
                        to="accounts.apiclient",
                    ),
                ),
                ("day", models.DateField()),
                ("requests", models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="ApiKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("prefix", models.CharField(max_length=12, unique=True)),
                ("digest", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("form", models.UUIDField(editable=False, null=True, unique=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                (
                    "client",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="keys",
                        to="accounts.apiclient",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RequestRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("request_id", models.UUIDField(verbose_name="request ID")),
                ("method", models.CharField(max_length=16)),
                ("path", models.CharField(max_length=300)),
                ("status", models.PositiveSmallIntegerField()),
                ("code", models.CharField(blank=True, max_length=40)),
                ("reason", models.CharField(blank=True, max_length=40)),
                ("order_reference", models.CharField(max_length=40, null=True)),
                ("idempotency_key", models.CharField(max_length=128, null=True)),
                ("milliseconds", models.PositiveIntegerField(verbose_name="duration (ms)")),
                (
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.account",
                    ),
                ),
                (
                    "client",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.apiclient",
                    ),
                ),
                (
                    "problems",
                    models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
                ),
            ],
            options={
                "verbose_name": "request",
                "indexes": [
                    models.Index(fields=["account", "id"], name="accounts_request_of_account"),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True,
                        fields=["request_id", "order_reference", "idempotency_key"],
                        name="accounts_request_by_value",
                        opclasses=[
                            "uuid_bloom_ops (n_distinct_per_range = 1000, false_positive_rate = 0.0005)",
                            "text_bloom_ops (n_distinct_per_range = 1000, false_positive_rate = 0.0005)",
                            "text_bloom_ops (n_distinct_per_range = 1000, false_positive_rate = 0.0005)",
                        ],
                        pages_per_range=16,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SecondFactor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="The human-readable name of this device.", max_length=64
                    ),
                ),
                (
                    "confirmed",
                    models.BooleanField(default=True, help_text="Is this device ready for use?"),
                ),
                (
                    "throttling_failure_timestamp",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="A timestamp of the last failed verification attempt. Null if last attempt succeeded.",
                        null=True,
                    ),
                ),
                (
                    "throttling_failure_count",
                    models.PositiveIntegerField(
                        default=0, help_text="Number of successive failed attempts."
                    ),
                ),
                ("sealed_key", models.BinaryField()),
                ("drift", models.SmallIntegerField(default=0)),
                ("last_step", models.BigIntegerField(default=-1)),
                (
                    "user",
                    models.ForeignKey(
                        help_text="The user that this device belongs to.",
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user",), name="accounts_secondfactor_one_per_user"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BackupCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                (
                    "factor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="backup_codes",
                        to="accounts.secondfactor",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("factor", "digest"), name="accounts_backupcode_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("time_zone", models.CharField(max_length=64)),
                ("language", models.CharField(blank=True, db_default="", max_length=8)),
                ("seen_language", models.CharField(blank=True, db_default="", max_length=8)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Company",
            fields=[
                ("legal_name", models.CharField(max_length=200)),
                ("address", models.TextField(blank=True, max_length=400)),
                ("country", models.CharField(blank=True, max_length=60)),
                ("tax_number", models.CharField(blank=True, max_length=60)),
                (
                    "contact",
                    models.CharField(blank=True, max_length=200, verbose_name="contact person"),
                ),
                ("billing_email", models.EmailField(blank=True, max_length=254)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="company",
                        serialize=False,
                        to="accounts.account",
                    ),
                ),
                ("note", models.TextField(blank=True, max_length=400)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Logo",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("picture", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="OwnCompany",
            fields=[
                ("legal_name", models.CharField(max_length=200)),
                ("address", models.TextField(blank=True, max_length=400)),
                ("country", models.CharField(blank=True, max_length=60)),
                ("tax_number", models.CharField(blank=True, max_length=60)),
                (
                    "contact",
                    models.CharField(blank=True, max_length=200, verbose_name="contact person"),
                ),
                ("billing_email", models.EmailField(blank=True, max_length=254)),
                (
                    "id",
                    models.SmallIntegerField(
                        default=1, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("footer", models.TextField(blank=True, max_length=400)),
                (
                    "logo",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.logo",
                    ),
                ),
            ],
            options={
                "verbose_name": "own company",
                "verbose_name_plural": "own company",
                "default_permissions": ("view", "change"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="accounts_owncompany_is_one"
                    )
                ],
            },
        ),
    ]
