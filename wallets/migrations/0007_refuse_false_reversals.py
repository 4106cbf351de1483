"""A reversal must be the opposite of its entry."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0006_key_old_bookings"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"reversals.sql": "4de3732dac697ee3b9eaf0a4989c1e3d5d56ee47d7741e31adcbab8ff8e05687"},
    )
