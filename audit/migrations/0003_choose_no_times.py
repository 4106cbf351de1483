"""The database chooses the times of audit entries."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0002_sql"),
        ("core", "0003_refuse_chosen_times"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"clock.sql": "96c1d7372b6d7444e7ac5c2ba87b5193aa5d50e9c501258e24ab88b49050ae4b"},
    )
