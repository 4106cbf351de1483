"""Installs the present SQL of an offer: a counted package is locked before its price is read."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("topups", "0006_storage")]
    operations = [run_sql_file(SQL / "offer.sql")]
