"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "guards.sql": "38b926ca72d65bd9c96212d6ae86c87b44e51c7609aa334eb0cca1c95ff854ab",
        },
    )
