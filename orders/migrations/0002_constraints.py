"""Installs the SQL of this app; the files say what each does."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0001_initial"),
        ("catalogue", "0002_functions"),
        ("wallets", "0002_ledger"),
        ("idempotency", "0002_functions"),
    ]
    operations = [
        run_sql_file(SQL / "constraints.sql"),
    ]
