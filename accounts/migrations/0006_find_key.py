"""The look-up of a key also returns the price list of the account, and whether the client is its
only one. The old function stays until the next minor release."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_add_price_list"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "find_key.sql": "37cd71a08270cac6c0854932d5524a498c79567f6c9ae00becb295052921d34f",
        },
    )
