"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from config.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0001_initial"),
        ("wallets", "0002_sql"),
        ("catalogue", "0002_sql"),
        ("idempotency", "0002_sql"),
        ("topups", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "constraints.sql": "37add523e67830c1bec7239549593701667e7c76537a4d6bbed51b84b2bee618",
            "guards.sql": "eafc2de5f2eb20ec074a8e4a2d2bac117ff6d75d9daaaa9ee63ec70e1c600024",
            "add.sql": "1b1f64a7432619b9f50f26f5e5c57fd44c0861fdf392dea9ea10919a6297d15e",
            "purchase_vouchers.sql": "6ef97ae76a630f4a156125c88ffe3f439f4c8b6945437f8be41769a5bd3b4ea8",
            "purchase_topup.sql": "e5e59c9e6266a461a8c7c38c6924d77c6f8e04a74e44c48be39c99a121f67d0b",
            "orders_of.sql": "f5748bab01091366a680ccb7baf6ecb3bf99fbfcbd0c4852030a92bac8aa362c",
            "spend_of_account.sql": "c9a909329c5ae6c2823a96e70b39b34feb209424ca9d3fb220de1c75e5328f5b",
            "storage.sql": "f422316d985d00789397a9070ed33f6a08acacee64028e16edf2481bc4e1ac80",
        },
    )
