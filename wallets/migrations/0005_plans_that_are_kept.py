"""Installs the present SQL of the debit: in PL/pgSQL its plan is kept, in SQL it is made anew."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("wallets", "0004_booking")]
    operations = [run_sql_file(SQL / "debit.sql")]
