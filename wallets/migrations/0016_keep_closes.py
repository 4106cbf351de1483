"""A close is never rewritten."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0015_close_days"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"closes.sql": "de94e5bd247e68f50a2287622bfb3cb8cb6a7fa3a6c8494ec0fa382607851e81"},
    )
