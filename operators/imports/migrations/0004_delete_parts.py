"""The parts of a file are deleted with the end of its import."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("imports", "0003_keep_parts")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"parts.sql": "f6181e39f6a4ff79dc44a66725e3e36df4422035b6c4fbf3f162ed2f25ce6f7f"},
    )
