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
            "add.sql": "e1a3e3c2eeaa5e239404b2cc1ffa5e70829275f32dc37ccd88c23f4a9205f203",
            "purchase_vouchers.sql": "c0abc05366ecfb0f91fdb46758a778db28cbdd20bbd7777648e1ed2d275b1f79",
            "purchase_topup.sql": "c55dbb01ba8b0ff721d217ed6fdb226d23c0aee1f3877d4ef826117319ee6113",
            "orders_of.sql": "ae7bc4374ef74bb3dc59cf85c80696f802349f749d2ef335cb602169378dd41c",
            "spend_of_account.sql": "c9a909329c5ae6c2823a96e70b39b34feb209424ca9d3fb220de1c75e5328f5b",
            "storage.sql": "f422316d985d00789397a9070ed33f6a08acacee64028e16edf2481bc4e1ac80",
        },
    )
