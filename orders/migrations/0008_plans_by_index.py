"""Installs SQL that reads by index however small its tables were when it was planned."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("orders", "0007_spend_of_account")]
    operations = [
        run_sql_file(SQL / "purchase_vouchers.sql"),
        run_sql_file(SQL / "purchase_topup.sql"),
        run_sql_file(SQL / "orders_of.sql"),
    ]
