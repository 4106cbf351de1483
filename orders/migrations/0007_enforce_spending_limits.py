"""Purchases count towards spending limits, and orders keep their idempotency keys."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0006_keep_idempotency_keys"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "spend.sql": "464b293fda06b167609abc4c7e4c1bcd9ec5c860a18148741b886657623d0b38",
            "add.sql": "1d05cf70c0e5e2c393d8bac53299a8b94faf720055aa261f53d73036aca3f6e0",
            "purchase_vouchers.sql": "bb86dd1bafd555d11ae38585295665178d0d74fb62ae817672ac57100fda9bfd",
            "purchase_topup.sql": "2f51224fc1bd6cde607fcfea867f61bd09bd278e1c7953da4bc65f453b616119",
        },
    )
