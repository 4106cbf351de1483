"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("figures", "0001_initial"),
        ("accounts", "0002_sql"),
        ("orders", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "sums.sql": "b5aa3ff3914e7b28238eae71f1e797ea6ecfaa4191392d752e4db55819ca876a",
        },
    )
