"""Installs the SQL of this app; the files say what each does."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0001_initial")]
    operations = [
        run_sql_file(SQL / "claim.sql"),
        run_sql_file(SQL / "stamp.sql"),
        run_sql_file(SQL / "store_response.sql"),
        run_sql_file(SQL / "release.sql"),
    ]
