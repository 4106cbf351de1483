"""Installs the SQL that says what a product asks for; the file says why it is a function."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("topups", "0004_price_changed_by")]
    operations = [run_sql_file(SQL / "inputs_of.sql")]
