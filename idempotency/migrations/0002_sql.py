"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("idempotency", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "claim.sql": "401f11ec4cc1e08f0eb3d756df4533e05b06bef0b6523d6818cfbf584672f81c",
            "stamp.sql": "01e1d42f2f1e1ace4bf57c5b056226b43b17b49327072e5d740009d590f17790",
            "store_response.sql": "09ea3987458c4818c1b3e34c7585de1465dee9aa97477439033287e44fbc6922",
            "release.sql": "8181090f5614807bb5842f65800a97f5c6d28bcee8f509c58553561c1b561746",
            "storage.sql": "615a569674d81719064837ed43493469ec9755075e6626cb15f6cd6e92723e60",
        },
    )
