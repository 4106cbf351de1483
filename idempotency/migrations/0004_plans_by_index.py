"""Installs SQL that reads by index however small its tables were when it was planned."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0003_storage")]
    operations = [
        run_sql_file(SQL / "claim.sql"),
        run_sql_file(SQL / "release.sql"),
        run_sql_file(SQL / "store_response.sql"),
    ]
