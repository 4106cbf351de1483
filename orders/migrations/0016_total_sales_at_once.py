"""Adds the sales of a statement to their totals at once, instead of row by row."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0015_fill_margin_sums"),
    ]

    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"totals.sql": "77db56b5d487e90056cc02f937e82a7d1f63bd1d1b85371c738b29f2cc806097"},
    )
