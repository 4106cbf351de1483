"""Installs `orders_of` with a plan that is kept however many orders a client has."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("orders", "0008_plans_by_index")]
    operations = [run_sql_file(SQL / "orders_of.sql")]
