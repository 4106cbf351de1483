"""A deleted player id gets a text that is no player id."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"guards.sql": "c9b9305008592f58e389275ba484511477c54a641c3741ac71b05e050bc2f16b"},
    )
