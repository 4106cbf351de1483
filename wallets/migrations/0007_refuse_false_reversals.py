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
        {"reversals.sql": "5888af5b23ba194060156a363335dc1a475fdc3c92fa42557b0486da9bb36d76"},
    )
