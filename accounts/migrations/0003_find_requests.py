"""The function that finds request records by their index."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"find_requests.sql": "918f1354eae90c0bbe162b7ff9955e1ff17d8643636cb2bfa4c0610e9801995b"},
    )
