"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0001_initial"),
        ("audit", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "is_on_sale.sql": "5bb82e2a5df857ae6595bb730f59a3498fb4b5e0be95c6743b4b4db2f934f276",
            "obstacle.sql": "eca0750a1114828449da8e4710e954ca461ae699c08f18871c9001b6c48ca913",
            "released/0002_offer.sql": "c8f8c714558459ee08b6e6838533abbe8eae1637327d37301ab2e7bb7bc6da18",
            "take_stock.sql": "2bebe6a7ecb8fe3248bc5115f6e5139d764cce582fd1948b46b497956d771c47",
            "open_fulfilment.sql": "a6dfeef65d6fca0d3c500d99a7dd104e0f8d9e664e457f0645b699c2b84f84f3",
            "released/0002_guards.sql": "8c196201b4fdc75942c244a76f9316774622ffefafe05514ab1ea3b942af0b35",
            "released/0002_price_history.sql": "a44bdd08983b372d8eae9c97c57e963f9397125f66875fc44fc76d7948c6c4ab",
            "field_ids.sql": "121053f09d0b06a6b7ad44458ab6e932f31bcde52b1684544e2f69fffb598a24",
            "fields_of.sql": "2c934b82084eeeb0bf715d00d6f3b51ce4ff0f48e5504777ad3b17fdbfbf5f0c",
            "storage.sql": "b8c2f45e908a5a7791fcceda5827c318b6c405f60d217951217454e23e1d5070",
        },
    )
