"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "released/0002_append_only.sql": "2c9a72bf489cc2da112eeaad54f0e3eca18fd72af032c6250a93eeb3eab8e0e7",
        },
    )
