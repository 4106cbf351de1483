"""Booking references are compared without case, and approvals are kept."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0004_wait_for_approval"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "booking_keys.sql": "4f6f334071690d1868f4a6bcceca41b993a965dc8944ebcb5f3fabd693ab12ac",
            "approvals.sql": "5e33f3709d703f37f4857db2342f4388e763f3ccb43b3b138444966b62911e4c",
        },
    )
