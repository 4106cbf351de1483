from pathlib import Path

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # A check of the tables below calls this function.
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "kinds.sql": "6dad8cb33af156ed30dc5a3290dd893e49d229862622817037c03062aae6394f",
            },
        ),
        migrations.CreateModel(
            name="Wallet",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="wallet",
                        serialize=False,
                        to="accounts.account",
                    ),
                ),
                (
                    "balance",
                    models.DecimalField(decimal_places=4, default=0, editable=False, max_digits=20),
                ),
                ("chain", models.BinaryField(null=True)),
            ],
            options={
                "permissions": [
                    ("move_money", "Can book deposits, payouts, adjustments and credits")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("balance__gte", 0)),
                        name="wallets_wallet_balance_not_negative",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("deposit", "Deposit"),
                            ("payout", "Payout"),
                            ("adjustment", "Adjustment"),
                            ("purchase", "Purchase"),
                            ("refund", "Refund"),
                            ("credit", "Credit"),
                            ("replacement", "Replacement"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "counterpart",
                    models.CharField(
                        choices=[
                            ("bank", "Bank"),
                            ("corrections", "Corrections"),
                            ("sales", "Sales"),
                        ],
                        max_length=16,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "balance_after",
                    models.DecimalField(decimal_places=4, editable=False, max_digits=20),
                ),
                ("order_reference", models.CharField(blank=True, max_length=26, null=True)),
                ("actor", models.CharField(max_length=200)),
                ("note", models.CharField(blank=True, db_default="", max_length=500)),
                ("booking_reference", models.CharField(editable=False, max_length=100, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("chain", models.BinaryField()),
                ("salt", models.UUIDField(editable=False, null=True)),
                (
                    "wallet",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="wallets.wallet",
                    ),
                ),
                (
                    "reason",
                    models.CharField(max_length=500, null=True, verbose_name="for the merchant"),
                ),
            ],
            options={
                "verbose_name_plural": "ledger entries",
                "indexes": [
                    models.Index(fields=["wallet", "id"], name="wallets_entry_of_wallet"),
                    models.Index(
                        condition=models.Q(("kind", "purchase"), _negated=True),
                        fields=["wallet", "kind", "id"],
                        name="wallets_entry_of_rare_kind",
                    ),
                    models.Index(
                        condition=models.Q(("kind", "purchase"), _negated=True),
                        fields=["kind", "id"],
                        name="wallets_entry_by_rare_kind",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("order_reference__isnull", False)),
                        fields=("order_reference", "kind", "booking_reference"),
                        name="wallets_entry_once_per_order",
                        nulls_distinct=False,
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("booking_reference__isnull", False)),
                        fields=("booking_reference",),
                        name="wallets_entry_once_per_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("booking_reference", None), ("kind__in", ["purchase", "refund"])
                            ),
                            models.Q(
                                models.Q(("kind__in", ["purchase", "refund"]), _negated=True),
                                ("booking_reference__isnull", False),
                                models.Q(("booking_reference", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="wallets_entry_booking_reference_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("balance_after__gte", 0)),
                        name="wallets_entry_balance_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reason", None), ("booking_reference__isnull", False), _connector="OR"
                        ),
                        name="wallets_entry_reason_is_of_a_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Func(
                            "kind",
                            "counterpart",
                            "amount",
                            "order_reference",
                            "booking_reference",
                            function="wallets_agrees_with_kind",
                            output_field=models.BooleanField(),
                        ),
                        name="wallets_entry_agrees_with_its_kind",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SignedRoot",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("signed_at", models.DateTimeField()),
                ("previous", models.BinaryField()),
                ("wallets", models.BigIntegerField()),
                ("root", models.BinaryField()),
                ("public_key", models.BinaryField()),
                ("signature", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="RootLeaf",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
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
                (
                    "root",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leaves",
                        to="wallets.signedroot",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("wallet", "root"), name="wallets_leaf_once_per_root"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BookingKey",
            fields=[
                ("key", models.CharField(max_length=200, primary_key=True, serialize=False)),
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="wallets.ledgerentry",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="BookingApproval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("deposit", "Deposit"),
                            ("payout", "Payout"),
                            ("adjustment", "Adjustment"),
                            ("credit", "Credit"),
                        ],
                        max_length=16,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                ("order_reference", models.CharField(max_length=26, null=True)),
                ("note", models.CharField(blank=True, db_default="", max_length=500)),
                ("booking_reference", models.CharField(max_length=100)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("booked", "Booked"),
                            ("rejected", "Rejected"),
                            ("withdrawn", "Withdrawn"),
                            ("expired", "Expired"),
                        ],
                        db_default="waiting",
                        max_length=16,
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "entry",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approval",
                        to="wallets.ledgerentry",
                    ),
                ),
                (
                    "wallet",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="wallets.wallet",
                        verbose_name="account",
                    ),
                ),
                (
                    "reason",
                    models.CharField(max_length=500, null=True, verbose_name="for the merchant"),
                ),
            ],
            options={
                "permissions": [("approve_booking", "Can approve bookings of other people")],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("booking_reference",),
                        name="wallets_approval_waits_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["deposit", "payout", "adjustment", "credit"])
                        ),
                        name="wallets_approval_is_of_a_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["waiting", "booked", "rejected", "withdrawn", "expired"])
                        ),
                        name="wallets_approval_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["booked", "rejected"]), _negated=True),
                            models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            _connector="OR",
                        ),
                        name="wallets_approval_by_another",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("decided_at", None),
                                ("decided_by", None),
                                ("state__in", ["waiting", "expired"]),
                            ),
                            models.Q(
                                ("decided_at__isnull", False),
                                ("decided_by__isnull", False),
                                ("state__in", ["booked", "rejected", "withdrawn"]),
                            ),
                            _connector="OR",
                        ),
                        name="wallets_approval_is_decided_by_a_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("entry__isnull", False), ("state", "booked")),
                            models.Q(models.Q(("state", "booked"), _negated=True), ("entry", None)),
                            _connector="OR",
                        ),
                        name="wallets_approval_booked_has_its_entry",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BookingLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("deposit", "Deposit"),
                            ("payout", "Payout"),
                            ("adjustment", "Adjustment"),
                            ("credit", "Credit"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "currency",
                    models.CharField(
                        blank=True,
                        db_default="",
                        max_length=3,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                (
                    "per_day",
                    models.DecimalField(
                        blank=True,
                        decimal_places=4,
                        max_digits=20,
                        null=True,
                        verbose_name="sum of a day",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("group", "kind", "currency"), name="wallets_limit_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["deposit", "payout", "adjustment", "credit"])
                        ),
                        name="wallets_limit_is_of_a_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("currency", ""), ("currency__regex", "^[A-Z]{3}$"), _connector="OR"
                        ),
                        name="wallets_limit_currency_is_a_code",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", 0)),
                        name="wallets_limit_amount_not_negative",
                        violation_error_message="Enter an amount of at least 0.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("per_day", None), ("per_day__gte", 0), _connector="OR"),
                        name="wallets_limit_per_day_not_negative",
                        violation_error_message="The sum of a day must be at least 0. Leave it empty for no limit.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BankDetails",
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
                        max_length=3,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Z]{3}\\Z", "Use three capital letters, such as USD."
                            )
                        ],
                    ),
                ),
                ("details", models.TextField(max_length=1000)),
            ],
            options={
                "verbose_name_plural": "bank details",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")),
                        name="wallets_bank_details_currency_is_a_code",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AnnouncedTransfer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                ("reference", models.CharField(max_length=100)),
                (
                    "announced_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("closed_at", models.DateTimeField(null=True)),
                ("seen_received", models.BooleanField(db_default=False, editable=False)),
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
                    "announced_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "closed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["account", "id"], name="wallets_transfer_of_account"),
                    models.Index(
                        condition=models.Q(("closed_at", None), ("seen_received", False)),
                        fields=["account"],
                        name="wallets_transfer_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("closed_at", None)),
                        fields=("account", "reference"),
                        name="wallets_transfer_announced_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gt", 0)),
                        name="wallets_transfer_amount_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at", None), ("closed_by", None)),
                            models.Q(("closed_at__isnull", False), ("closed_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="wallets_transfer_is_closed_by_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BookedAlone",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("deposit", "Deposit"),
                            ("payout", "Payout"),
                            ("adjustment", "Adjustment"),
                            ("credit", "Credit"),
                        ],
                        max_length=16,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("amount", models.DecimalField(decimal_places=4, max_digits=20)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "day", "kind", "currency"), name="wallets_alone_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("kind__in", ["deposit", "payout", "adjustment", "credit"])
                        ),
                        name="wallets_alone_is_of_a_booking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("amount__gte", 0)),
                        name="wallets_alone_amount_not_negative",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DailyClose",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("opening", models.DecimalField(decimal_places=4, max_digits=28)),
                ("purchases", models.DecimalField(decimal_places=4, max_digits=28)),
                ("refunds", models.DecimalField(decimal_places=4, max_digits=28)),
                ("credits", models.DecimalField(decimal_places=4, max_digits=28)),
                ("deposits", models.DecimalField(decimal_places=4, max_digits=28)),
                ("payouts", models.DecimalField(decimal_places=4, max_digits=28)),
                ("adjustments", models.DecimalField(decimal_places=4, max_digits=28)),
                ("closing", models.DecimalField(decimal_places=4, max_digits=28)),
                ("currency", models.CharField(max_length=3)),
                ("wallets", models.BigIntegerField()),
                (
                    "closed_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("day", "currency"), name="wallets_day_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "closing",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        django.db.models.expressions.CombinedExpression(
                                            django.db.models.expressions.CombinedExpression(
                                                django.db.models.expressions.CombinedExpression(
                                                    django.db.models.expressions.CombinedExpression(
                                                        models.F("opening"),
                                                        "+",
                                                        models.F("purchases"),
                                                    ),
                                                    "+",
                                                    models.F("refunds"),
                                                ),
                                                "+",
                                                models.F("credits"),
                                            ),
                                            "+",
                                            models.F("deposits"),
                                        ),
                                        "+",
                                        models.F("payouts"),
                                    ),
                                    "+",
                                    models.F("adjustments"),
                                ),
                            )
                        ),
                        name="wallets_day_adds_up",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WalletClose",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("opening", models.DecimalField(decimal_places=4, max_digits=28)),
                ("purchases", models.DecimalField(decimal_places=4, max_digits=28)),
                ("refunds", models.DecimalField(decimal_places=4, max_digits=28)),
                ("credits", models.DecimalField(decimal_places=4, max_digits=28)),
                ("deposits", models.DecimalField(decimal_places=4, max_digits=28)),
                ("payouts", models.DecimalField(decimal_places=4, max_digits=28)),
                ("adjustments", models.DecimalField(decimal_places=4, max_digits=28)),
                ("closing", models.DecimalField(decimal_places=4, max_digits=28)),
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
                "verbose_name": "close of a wallet",
                "verbose_name_plural": "closes of wallets",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["day"], name="wallets_close_by_day")],
                "constraints": [
                    models.UniqueConstraint(fields=("wallet", "day"), name="wallets_close_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "closing",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        django.db.models.expressions.CombinedExpression(
                                            django.db.models.expressions.CombinedExpression(
                                                django.db.models.expressions.CombinedExpression(
                                                    django.db.models.expressions.CombinedExpression(
                                                        models.F("opening"),
                                                        "+",
                                                        models.F("purchases"),
                                                    ),
                                                    "+",
                                                    models.F("refunds"),
                                                ),
                                                "+",
                                                models.F("credits"),
                                            ),
                                            "+",
                                            models.F("deposits"),
                                        ),
                                        "+",
                                        models.F("payouts"),
                                    ),
                                    "+",
                                    models.F("adjustments"),
                                ),
                            )
                        ),
                        name="wallets_close_adds_up",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthlyStatement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("month", models.DateField()),
                (
                    "issued_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("issuer", models.JSONField()),
                ("recipient", models.JSONField()),
                ("bank_details", models.TextField(blank=True)),
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
                        fields=("month", "wallet"), name="wallets_statement_once"
                    )
                ],
            },
        ),
    ]
