"""The price of a shelf for one merchant."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_add_price_list"),
        ("audit", "0002_sql"),
        ("catalogue", "0014_validate_next_price"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "regular_price.sql": "05746584e1009d2991f2779368b8a75a961b18fa871924cf91dc53d5286b854b",
            "price.sql": "dfd2e68619e11a25b2256097a77b1c17649d7e8af6df243829ca04a9818ed3d2",
            "price_lists.sql": "f9f71b9c98d03470e3624d617b816858ea26dad0d7e968c2c8a08d786b07000c",
            "price_history.sql": "921d291158680b9451271513a344772f7b6e7e0b1ef91bbf5e6e2766877e8373",
            "offer.sql": "c42d785380fc65ff0e4ad4394bc96a665e47f1bce6ad01f301020c6958377f49",
            "list_of_account.sql": "6b63783089279f43c5d64506e463767c39fc914b8008c59bc55fe16333585f4e",
        },
    )
