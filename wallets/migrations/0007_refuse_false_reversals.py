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
        {"reversals.sql": "7b73711d64484cdb665761f6fdd7e24a148c76ceda0d3cd4da753c93ff195fdb"},
    )
