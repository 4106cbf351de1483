"""A purchase takes codes in stock only; void codes stay void."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0004_index_code_holds")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "take_codes.sql": "1873f53933f29402d2a05c75746e886d4346272e7138955a786b96f6a0a704a8",
            "holds.sql": "898c447d607be01617fb0344ce45cb52b417fcdb3b9943417808e21485d29727",
        },
    )
