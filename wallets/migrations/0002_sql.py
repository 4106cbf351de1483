"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "released/0002_post_entry.sql": "560f906e9f464af5004b070e4a9560ce688cea3efa2e5d1aaf725aee19386733",
            "released/0002_guards.sql": "fa06f9cd86796a672d88f97fcaee313a1efd59b87fe42613b7dee40507a9f59a",
            "paid_back.sql": "d4b7c517e518304ec18aa02bc75a783db3ef3c4c31e9a0b168b2da2888781e84",
            "require.sql": "b2dd718d475c1a3b4f1d332ede001e243f02dfe6dbd031a335cba019592977aa",
            "debit.sql": "59387324a29eca4a75f294d13dd5bbc59533c076749efe242e231e3da1f7fc49",
            "entries_since.sql": "38faec8a9b78542c5990bb9003d5d4eb6f5773a1b4117872a0ba516ff0c3b918",
            "storage.sql": "6f49b90ce238ecac7832eff768f4f65420a263997471e4c15fecd2112463cba9",
        },
    )
