"""The price of a top-up product for one merchant."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_add_price_list"),
        ("audit", "0002_sql"),
        ("catalogue", "0015_price_by_merchant"),
        ("topups", "0005_validate_next_price"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "price.sql": "42a655d231ea1a378b8538dfa030bbe5259826c046aeaeec2f2d700f7a1b15cb",
            "next_price.sql": "f242e5901b3b8d0241d806a2d747b7be15ae004227a303c7620a927b30e6a7ae",
            "price_history.sql": "6ae0f12d477dd89f2ba16b9c42068234eba0d9debc10a6e1d93f5a27a5ca810e",
            "offer.sql": "eb1305854b60428618e4a9bb96f81f830b751688072dc7579dc681410f9f2ffb",
            "constraints.sql": "3cd5bd8318a3fc25ce415d71b8649609dd85cac31381fb8a09c0c82dc0a841b9",
        },
    )
