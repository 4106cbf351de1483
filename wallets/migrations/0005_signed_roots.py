"""The signed roots of the ledger (wallets/roots.py)."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("wallets", "0004_chain_of_entries")]

    operations = [
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
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="EarlierEntries",
            fields=[
                (
                    "wallet",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="earlier",
                        serialize=False,
                        to="wallets.wallet",
                    ),
                ),
                ("last_entry", models.BigIntegerField()),
                ("chain", models.BinaryField()),
            ],
            options={"verbose_name_plural": "earlier entries", "default_permissions": ()},
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
                    "root",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="leaves",
                        to="wallets.signedroot",
                    ),
                ),
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
                        fields=("wallet", "root"), name="wallets_leaf_once_per_root"
                    )
                ],
            },
        ),
    ]
