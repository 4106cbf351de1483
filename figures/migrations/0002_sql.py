"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("figures", "0001_initial"),
        ("accounts", "0002_sql"),
        ("orders", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "sums.sql": "0aa9513ecb4b4c2bb741849223994d31e03d1600735838f18fc545c9c225115c",
        },
    )
