"""Installs the SQL of this app; the files say what each does."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0001_initial")]
    operations = [
        run_sql_file(SQL / "constraints.sql"),
        run_sql_file(SQL / "shelves.sql"),
        run_sql_file(SQL / "offer.sql"),
        run_sql_file(SQL / "take_codes.sql"),
    ]
