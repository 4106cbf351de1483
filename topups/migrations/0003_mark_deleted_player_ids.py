"""A deleted player id gets a text that is no player id."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"guards.sql": "81c90ae71fb7da0152a69825e61be1e64b6d6086e781b908d5d4b217f87738ca"},
    )
