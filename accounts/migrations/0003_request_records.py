"""A record of each purchase attempt and each refused request."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_sql")]
    operations = [
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
                ("request_id", models.UUIDField(verbose_name="request id")),
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
            ],
            options={
                "indexes": [
                    models.Index(fields=["account", "id"], name="accounts_request_of_account")
                ],
            },
        ),
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {
                "request_records.sql": "64a515521fe47b70ae98b129e164b298"
                "81d282a5f2fb8895e4e98924c3ca110a",
            },
        ),
    ]
