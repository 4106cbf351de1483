"""A batch keeps its codes."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0006_add_batches")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"batches.sql": "de1cc08727ddabf850bf39ea38f34427a5dfa084162cc4b59bf1b7e5b4cc19aa"},
    )
