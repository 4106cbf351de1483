"""Installs the SQL that reads orders; the file says why it is a function."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0005_price_changed_by"),
        ("orders", "0004_purchases"),
        ("topups", "0004_price_changed_by"),
    ]
    operations = [run_sql_file(SQL / "orders_of.sql")]
