"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0001_initial"),
        ("core", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "append_only.sql": "cb5ca18c20dd2e4e472da30f6c6efeca1bbde1ae16a900ea91522a11075a3c79",
            "record_price.sql": "685552c2123a0af2b0f48ba6c71066f9dab4e06bf3389fceba819882975173b3",
            "clock.sql": "96c1d7372b6d7444e7ac5c2ba87b5193aa5d50e9c501258e24ab88b49050ae4b",
        },
    )
