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
        {"totals.sql": "8c0e948bfe28e82afd1e2d0e35eb8897b388f8493fc4890992b34e5376bd8146"},
    )
