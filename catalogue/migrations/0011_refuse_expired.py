"""Expired codes are not sold."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0010_index_expiry")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "expiry.sql": "c1a7b22bf8f5cac6f4b557056764bd097cb0071f9c68af72af97906eb3ade302",
            "take_codes.sql": "ea938678a9bfaff4dee9614776e959c92ab14a4e68e34446e808c1a77ededb70",
        },
    )
