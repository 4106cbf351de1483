"""Installs the present SQL of a sale; the file says which plan it wants, and why."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0005_price_changed_by")]
    operations = [run_sql_file(SQL / "take_codes.sql")]
