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
        {"totals.sql": "5d14c6506ebc246f63c370cf5660e5b8871e27d434b931d96ab72a8abddbc192"},
    )
