"""Installs the SQL that adds up what an account spent."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0006_storage"),
        ("topups", "0009_failed_of_account"),
        ("wallets", "0007_statement"),
    ]
    operations = [run_sql_file(SQL / "spend_of_account.sql")]
