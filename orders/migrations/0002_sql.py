"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


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
            "released/0002_add.sql": "e1a3e3c2eeaa5e239404b2cc1ffa5e70829275f32dc37ccd88c23f4a9205f203",
            "released/0002_purchase_vouchers.sql": "637beeb1e96a6dd28cfcdb8c5a159c30e83df8d029044e2b3571732a249963eb",
            "released/0002_purchase_topup.sql": "e737709236dad2b0b80c67cb9c53d4455b6ff61f7f00d5fbd774dc5ad8e9ac90",
            "orders_of.sql": "b90c8e626a6b3d1cf3a4e08268f523e3deeab7902cd88717ea9fc7d1b8692504",
            "released/0002_spend_of_account.sql": "c9a909329c5ae6c2823a96e70b39b34feb209424ca9d3fb220de1c75e5328f5b",
            "storage.sql": "7139d51ffe6e0b4392ac0685bb88c3c6c92610f66a8dbea4a042f86be64a9236",
        },
    )
