"""Installs SQL that reads by index however small its tables were when it was planned."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_use")]
    operations = [run_sql_file(SQL / "find_key.sql")]
