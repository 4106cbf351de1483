"""Installs the SQL that looks a key up; the file says why it is a function."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0002_guards")]
    operations = [run_sql_file(SQL / "find_key.sql")]
