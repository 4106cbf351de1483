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
            "chain.sql": "e42cc697b8532f425a75262462d527ffced011caf05ca2047d51be4a03d978ec",
            "post_entry.sql": "9cc380b2fec8552675616a4f93961e7300d54de550104148506f90653d128567",
            "guards.sql": "336b92952407cd378b1371b642834c540bbf446f5c39e33108f07314f9da96e6",
            "paid_back.sql": "aa54e91e07d69c441f1e50909396070a7fe6fde186782ea9792f8b13860ddbd3",
            "require.sql": "b2dd718d475c1a3b4f1d332ede001e243f02dfe6dbd031a335cba019592977aa",
            "debit.sql": "59387324a29eca4a75f294d13dd5bbc59533c076749efe242e231e3da1f7fc49",
            "entries_since.sql": "38faec8a9b78542c5990bb9003d5d4eb6f5773a1b4117872a0ba516ff0c3b918",
            "roots.sql": "5ec02b9b4af0624af4d062692e5d77c561da986b37a85cbef3150f8a56a33733",
            "storage.sql": "aeb5141971d6f4221251c01935335ab449cbaea4e6b845234404084e09a95b1b",
        },
    )
