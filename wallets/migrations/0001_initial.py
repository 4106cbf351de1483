import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
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
            ],
            options={
                "verbose_name_plural": "ledger entries",
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
            ],
            options={
                "default_permissions": (),
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
        migrations.AddConstraint(
            model_name="wallet",
            constraint=models.CheckConstraint(
                condition=models.Q(("balance__gte", 0)), name="wallets_wallet_balance_not_negative"
            ),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="wallet",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="wallets.wallet",
            ),
        ),
        migrations.AddField(
            model_name="rootleaf",
            name="wallet",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="wallets.wallet",
            ),
        ),
        migrations.AddField(
            model_name="rootleaf",
            name="root",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="leaves",
                to="wallets.signedroot",
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["wallet", "id"], name="wallets_entry_of_wallet"),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(
                condition=models.Q(("kind", "purchase"), _negated=True),
                fields=["wallet", "kind", "id"],
                name="wallets_entry_of_rare_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(
                condition=models.Q(("order_reference__isnull", False)),
                fields=("order_reference", "kind", "booking_reference"),
                name="wallets_entry_once_per_order",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(
                condition=models.Q(("booking_reference__isnull", False)),
                fields=("booking_reference",),
                name="wallets_entry_once_per_booking",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("booking_reference", None), ("kind__in", ["purchase", "refund"])),
                    models.Q(
                        models.Q(("kind__in", ["purchase", "refund"]), _negated=True),
                        ("booking_reference__isnull", False),
                        models.Q(("booking_reference", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="wallets_entry_booking_reference_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("balance_after__gte", 0)),
                name="wallets_entry_balance_not_negative",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("amount__gt", 0),
                        ("counterpart", "bank"),
                        ("kind", "deposit"),
                        ("order_reference", None),
                    ),
                    models.Q(
                        ("amount__lt", 0),
                        ("counterpart", "bank"),
                        ("kind", "payout"),
                        ("order_reference", None),
                    ),
                    models.Q(
                        ("counterpart", "corrections"),
                        ("kind", "adjustment"),
                        ("order_reference", None),
                        models.Q(("amount", 0), _negated=True),
                    ),
                    models.Q(
                        ("amount__lt", 0),
                        ("counterpart", "sales"),
                        ("kind", "purchase"),
                        ("order_reference__isnull", False),
                    ),
                    models.Q(
                        ("amount__gt", 0),
                        ("counterpart", "sales"),
                        ("kind__in", ["refund", "credit"]),
                        ("order_reference__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="wallets_entry_kind_agrees",
            ),
        ),
        migrations.AddConstraint(
            model_name="rootleaf",
            constraint=models.UniqueConstraint(
                fields=("wallet", "root"), name="wallets_leaf_once_per_root"
            ),
        ),
    ]
