"""The ledger's trigger continues the chain, and signed roots are append-only."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [("wallets", "0005_signed_roots")]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "chain.sql": "e42cc697b8532f425a75262462d527ffced011caf05ca2047d51be4a03d978ec",
            "post_entry.sql": "9cc380b2fec8552675616a4f93961e7300d54de550104148506f90653d128567",
            "guards.sql": "336b92952407cd378b1371b642834c540bbf446f5c39e33108f07314f9da96e6",
            "roots.sql": "5ec02b9b4af0624af4d062692e5d77c561da986b37a85cbef3150f8a56a33733",
        },
    )
