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
            "chain.sql": "7bcc5f7ae79745998b7f1bd288938180a2b2a7871af24cab3a2a335a5c9c1d5d",
            "released/0002_post_entry.sql": "83b88bd09e677d296f98cc276ba6e3c76c7d5287362a6c3307f00447ae7199d9",
            "guards.sql": "336b92952407cd378b1371b642834c540bbf446f5c39e33108f07314f9da96e6",
            "paid_back.sql": "aa54e91e07d69c441f1e50909396070a7fe6fde186782ea9792f8b13860ddbd3",
            "require.sql": "b2dd718d475c1a3b4f1d332ede001e243f02dfe6dbd031a335cba019592977aa",
            "debit.sql": "59387324a29eca4a75f294d13dd5bbc59533c076749efe242e231e3da1f7fc49",
            "entries_since.sql": "38faec8a9b78542c5990bb9003d5d4eb6f5773a1b4117872a0ba516ff0c3b918",
            "roots.sql": "6896d52cc603670712866f7345afcfcaf531efd1c2ba99eabfa31c615ec227c0",
            "storage.sql": "aeb5141971d6f4221251c01935335ab449cbaea4e6b845234404084e09a95b1b",
        },
    )
