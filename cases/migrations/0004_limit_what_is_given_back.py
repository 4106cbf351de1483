from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    """An order gives back at most what it cost, in money and in codes together."""

    dependencies = [
        ("cases", "0003_check_orders"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "given_back.sql": "7a18806275e8595cb1df885fa17a4aea4f62335eadd9be858305b5e59bbe6602",
        },
    )
