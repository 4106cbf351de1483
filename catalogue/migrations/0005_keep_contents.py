"""Codes keep their digest, and change what is sealed only with the key."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0004_validate_quantity_step"),
        ("core", "0002_keep_root_secret"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"contents.sql": "b074851bd4411ee5efa0076393ae5e0be7098b453a54bd7c235d95e8c0683b08"},
    )
