"""A closed wallet never changes again."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("wallets", "0008_add_closing")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {"closed.sql": "23784fd93c1007f1511fada4e1f7728d72a98f9a0878086b4bcb26cc4c804dae"},
    )
