"""A price that SQL changes has an audit entry."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("topups", "0010_name_the_options"), ("audit", "0010_sql_prices")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"price_history.sql": "a44bdd08983b372d8eae9c97c57e963f9397125f66875fc44fc76d7948c6c4ab"},
    )
