"""A purchase takes codes in stock only; void codes stay void."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0004_index_code_holds")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "take_codes.sql": "1873f53933f29402d2a05c75746e886d4346272e7138955a786b96f6a0a704a8",
            "holds.sql": "2f396664eea8685b6a29b8e27cacd7b41e55f0073e79c7a0b457d89d1dcb0026",
        },
    )
