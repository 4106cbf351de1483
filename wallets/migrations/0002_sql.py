"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0001_initial"),
        ("accounts", "0002_sql"),
        ("core", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "chain.sql": "b5be537c800fc21d7d050e13baabd4deba7635ef2f11b9f49aa5da78604e6527",
            "guards.sql": "336b92952407cd378b1371b642834c540bbf446f5c39e33108f07314f9da96e6",
            "paid_back.sql": "aa54e91e07d69c441f1e50909396070a7fe6fde186782ea9792f8b13860ddbd3",
            "require.sql": "b2dd718d475c1a3b4f1d332ede001e243f02dfe6dbd031a335cba019592977aa",
            "debit.sql": "59387324a29eca4a75f294d13dd5bbc59533c076749efe242e231e3da1f7fc49",
            "entries_since.sql": "38faec8a9b78542c5990bb9003d5d4eb6f5773a1b4117872a0ba516ff0c3b918",
            "roots.sql": "6896d52cc603670712866f7345afcfcaf531efd1c2ba99eabfa31c615ec227c0",
            "storage.sql": "aeb5141971d6f4221251c01935335ab449cbaea4e6b845234404084e09a95b1b",
            "clock.sql": "17d97d9e50165c037d56423bad4c1b12d886533c324ffa3ec4a973c43d46545b",
            "booking_keys.sql": "4f6f334071690d1868f4a6bcceca41b993a965dc8944ebcb5f3fabd693ab12ac",
            "approvals.sql": "5e33f3709d703f37f4857db2342f4388e763f3ccb43b3b138444966b62911e4c",
            "reversals.sql": "9701fb001345577b163cea2ea6db0dcd840ac33b5f00057f81a69fcebc71c3f4",
            "replace.sql": "0fe7441420cee09d0590e4b0e9bca6eeb97a244a7071b57dba0e7b3f6f3e2be3",
            "closes.sql": "cfa124d94efb35f20a6402afd48f27ae3afed31a572d6e30b9d378084d907ede",
            "reasons.sql": "d0533ddcb51afdc15b5c0257ecfc97b31da2c4b2c95a1844cdf2c86913aeb529",
            "post_entry.sql": "4c95c0c7cdd82d85622b65592216e0d2eee0cb88381a641f971ecaafc3c5ef84",
        },
    )
