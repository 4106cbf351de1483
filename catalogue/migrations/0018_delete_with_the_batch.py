"""Codes are deleted only when their import is taken back."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0017_trace_codes")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"removal.sql": "90250aec2b6015000d1a7398699f20573614ed3318077d1892607c670be313d5"},
    )
