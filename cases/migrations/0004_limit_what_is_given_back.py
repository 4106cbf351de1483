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
            "given_back.sql": "b889d0fb5d838adf7a1cb3725c7988cd8b90076fc6dae4f2d7f81757996bf756",
        },
    )
