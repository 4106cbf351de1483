"""Installs the SQL of this app; the files say what each does."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("wallets", "0001_initial")]
    operations = [
        run_sql_file(SQL / "post_entry.sql"),
        run_sql_file(SQL / "guards.sql"),
        run_sql_file(SQL / "require.sql"),
        run_sql_file(SQL / "debit.sql"),
    ]
