"""Accounts that came from another cell, or left for one."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_request_records"),
        ("operators", "0004_add_announcement_age"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccountTransfer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reference", models.CharField(max_length=64)),
                ("sent", models.BooleanField()),
                ("cell", models.CharField(help_text="The other cell.", max_length=8)),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transfers",
                        to="accounts.account",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("account", "sent"), name="operators_account_transferred_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("sent", True)),
                        fields=("reference",),
                        name="operators_transfer_sent_once",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("sent", False)),
                        fields=("cell", "reference"),
                        name="operators_transfer_received_once",
                    ),
                ],
            },
        ),
    ]
