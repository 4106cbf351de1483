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
        {"reversals.sql": "9701fb001345577b163cea2ea6db0dcd840ac33b5f00057f81a69fcebc71c3f4"},
    )
