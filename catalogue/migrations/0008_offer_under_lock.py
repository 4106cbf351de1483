"""Installs the present SQL of an offer: its shelf is locked before its price is read."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0007_storage")]
    operations = [run_sql_file(SQL / "offer.sql")]
