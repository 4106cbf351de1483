"""Installs the present SQL that opens a fulfilment: PL/pgSQL, which keeps its plans between calls."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("topups", "0007_offer_under_lock")]
    operations = [run_sql_file(SQL / "open_fulfilment.sql")]
