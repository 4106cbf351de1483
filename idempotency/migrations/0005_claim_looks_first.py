"""Installs a claim that looks for its key before it tries to insert it: a replay inserts nothing."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import run_sql_file

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0004_plans_by_index")]
    operations = [run_sql_file(SQL / "claim.sql")]
