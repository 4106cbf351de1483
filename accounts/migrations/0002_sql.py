"""Installs the functions and triggers in `sql/`."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "guards.sql": "0b92b12048ef6b3c9995df20debfbd9b6e9021da7533d8cc39536f384862a583",
            "find_live_key.sql": "c5ffc8b55d4df02c12cfaa53ef4fac057b54fcd718c34d244906db501747ce3a",
        },
    )
