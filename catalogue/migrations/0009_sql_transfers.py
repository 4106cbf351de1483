"""A transfer of stock never changes."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0008_add_stock_transfer")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"transfers.sql": "4a5c92b8fe1366313b43e63c28c1f0ca58b36deaaf9ca3c96c0ca42074972834"},
    )
