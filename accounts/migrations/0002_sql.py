"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "guards.sql": "0b92b12048ef6b3c9995df20debfbd9b6e9021da7533d8cc39536f384862a583",
            "released/0002_find_live_key.sql": "e8c747e9b80d534dc237fc33616a325d7ff52f62a8857ea6e412c3cdf43579b0",
            "released/0002_request_records.sql": "64a515521fe47b70ae98b129e164b29881d282a5f2fb8895e4e98924c3ca110a",
        },
    )
