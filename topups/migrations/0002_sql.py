"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0001_initial"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "is_on_sale.sql": "6d5703cee7f178163ea511fb0af3e6e66a003ad4488d98e44837a02da14406c5",
            "offer.sql": "ece58058e24a3a9b5d6b178e558404b95ed4a0e63c9a9bed58aa71bdcae113a0",
            "take_stock.sql": "57c753bd39d8aa1f220062ccfecc7ecffbab0c51274408c2916d2a0df28d1e8a",
            "open_fulfilment.sql": "ea382c11798f5f099cf8217a26bfc44c03d71f9b75748ef3a134b33cdeb918f3",
            "guards.sql": "34880358d0da20e3b0e8933e24fb46468e07ddd8b0ba78d79d9110f75e7cd588",
            "price_history.sql": "36afa7ac3fdc6437852fefe3b4f9afa1e3f817698de9a899c4be9b43da275f82",
            "fields_of.sql": "ac5b2d32d77d208808dff951beec4f0746a403a43094f38aafe9f61cac99d613",
            "storage.sql": "f38d8b629e4c1d6aca49fae9b6bc2fe4598071fdeeec44a041720f8a3e36ffd1",
        },
    )
