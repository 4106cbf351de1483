"""A function for triggers of records, which refuse a chosen time."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0002_keep_root_secret"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"clock.sql": "c21ad042d8180ea55e1f4fd06f2a5f6c076f153630ae808084606a9f883281e7"},
    )
