"""Allows the deletion of what `delete_old_data` may delete."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"guards.sql": "8c196201b4fdc75942c244a76f9316774622ffefafe05514ab1ea3b942af0b35"},
    )
