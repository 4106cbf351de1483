"""A closed wallet never changes again."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("wallets", "0008_add_closing")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"closed.sql": "fd0a58970bb6d82c20419e355fd6320cfc2e41fb8f85497b75bc9c64955a490f"},
    )
