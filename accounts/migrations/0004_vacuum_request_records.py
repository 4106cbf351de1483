"""How often request records are vacuumed."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0003_find_requests"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"storage.sql": "10bb56f042d460d23d9839e6cfa6ad47ca1784d72d1475d551f05ebb43cd42e3"},
    )
