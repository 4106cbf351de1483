"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "post_entry.sql": "ace98bc5f18be4b5e217cf6699e8607e94906ae1c96fa8bac848f8ea620cf6e4",
            "guards.sql": "c09545b7bbcaf4f94030bb1620fc29971f5e32870e727899ad8642e5d0e46ffc",
            "require.sql": "5f618da389c69a3057759bb7c008cd66465c855ff9d8b89061d2bf81a5f8facd",
            "debit.sql": "74d0c33b077d3dbf4ddc9b4b840e5f566fe577df3540c12e88d98313d4893fed",
            "entries_since.sql": "4cee27f29aaed240d92b3951aee4eb3e8f284a78dce1a05943c38c2720a2d47a",
            "storage.sql": "a2903d65b89d346197e969d0fb5004e8bd10ef4dfc1dc1bb65cd39dd40047b23",
        },
    )
