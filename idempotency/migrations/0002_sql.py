"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("idempotency", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "claim.sql": "99ebe134ccf64221604056676a3fbfcbc302c724a933f17a8382aa40bda725aa",
            "stamp.sql": "7a8431bd7bfd3e42d61d8a58e4b22dc99e78a6f9931c9100a645af2385748edc",
            "store_response.sql": "b86e6a9ce844772d814f04f487c3fe4e36459715c91fdb2806b157afc5ea9ca8",
            "release.sql": "3a810aacf9973b970dc6b864cf548b1e5e6dd6ac3a7f9aa1120ed79d00948069",
            "storage.sql": "bd91ef9b7b8c1c2cdfa8443eef7810b3e916c295fa380b05bfe34e45b30c620c",
        },
    )
