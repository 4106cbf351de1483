"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "guards.sql": "938cf1da262c6177ed5e763e24a00679a5f75bcd64063a0b86f7aa176fd608aa",
            "find_key.sql": "2c7a7dc5191df211a422888f6fba00a8795af5cb767f94b6b8ce2e9559f3ef72",
        },
    )
