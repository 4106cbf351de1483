"""The database chooses the times of ledger entries."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0002_sql"),
        ("core", "0003_refuse_chosen_times"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"clock.sql": "17d97d9e50165c037d56423bad4c1b12d886533c324ffa3ec4a973c43d46545b"},
    )
