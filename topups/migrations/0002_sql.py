"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0001_initial"),
        ("accounts", "0002_sql"),
        ("audit", "0002_sql"),
        ("catalogue", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "is_on_sale.sql": "5bb82e2a5df857ae6595bb730f59a3498fb4b5e0be95c6743b4b4db2f934f276",
            "obstacle.sql": "eca0750a1114828449da8e4710e954ca461ae699c08f18871c9001b6c48ca913",
            "take_stock.sql": "2bebe6a7ecb8fe3248bc5115f6e5139d764cce582fd1948b46b497956d771c47",
            "open_fulfilment.sql": "a6dfeef65d6fca0d3c500d99a7dd104e0f8d9e664e457f0645b699c2b84f84f3",
            "field_ids.sql": "121053f09d0b06a6b7ad44458ab6e932f31bcde52b1684544e2f69fffb598a24",
            "fields_of.sql": "2c934b82084eeeb0bf715d00d6f3b51ce4ff0f48e5504777ad3b17fdbfbf5f0c",
            "storage.sql": "b8c2f45e908a5a7791fcceda5827c318b6c405f60d217951217454e23e1d5070",
            "guards.sql": "c9b9305008592f58e389275ba484511477c54a641c3741ac71b05e050bc2f16b",
            "price.sql": "42a655d231ea1a378b8538dfa030bbe5259826c046aeaeec2f2d700f7a1b15cb",
            "next_price.sql": "f242e5901b3b8d0241d806a2d747b7be15ae004227a303c7620a927b30e6a7ae",
            "price_history.sql": "f38cc749ea4a9e4177bdd362527396e792d226e12b59329ee60e7fb4b40e8f0f",
            "offer.sql": "eb1305854b60428618e4a9bb96f81f830b751688072dc7579dc681410f9f2ffb",
            "constraints.sql": "b30b82195dfaf3f626cd7142baf04427c13240d101cc80d532bb6fefd56759a2",
            "delivery_proofs.sql": "2b898b63b1fbc018f5e76e7ff459f101284d77ebdced343ed16d8a7ed1e5f90b",
        },
    )
