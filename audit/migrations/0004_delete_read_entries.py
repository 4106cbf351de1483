"""Allows the deletion of what `delete_old_data` may delete."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0003_code_holds"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"append_only.sql": "cb5ca18c20dd2e4e472da30f6c6efeca1bbde1ae16a900ea91522a11075a3c79"},
    )
