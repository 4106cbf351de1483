"""Functions, triggers and storage of this app; each file of `sql/` says what it is for."""

from pathlib import Path

from django.db import migrations

from core.database.migrations import install_sql


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0001_initial"),
        ("accounts", "0002_sql"),
        ("catalogue", "0002_sql"),
        ("core", "0001_initial"),
        ("idempotency", "0002_sql"),
        ("topups", "0002_sql"),
        ("wallets", "0002_sql"),
    ]
    operations = install_sql(
        Path(__file__).parents[1] / "sql",
        {
            "constraints.sql": "37add523e67830c1bec7239549593701667e7c76537a4d6bbed51b84b2bee618",
            "guards.sql": "eafc2de5f2eb20ec074a8e4a2d2bac117ff6d75d9daaaa9ee63ec70e1c600024",
            "orders_of.sql": "b90c8e626a6b3d1cf3a4e08268f523e3deeab7902cd88717ea9fc7d1b8692504",
            "look_ahead.sql": "61ed7402a643a211c16864a508207a294106232b0e09c055563875b302097991",
            "storage.sql": "7139d51ffe6e0b4392ac0685bb88c3c6c92610f66a8dbea4a042f86be64a9236",
            "root_secret.sql": "859521a7f9e4e167a14d7da79176cda761bab450c22baa77f4d1d941888b43f5",
            "spend.sql": "464b293fda06b167609abc4c7e4c1bcd9ec5c860a18148741b886657623d0b38",
            "add.sql": "1d05cf70c0e5e2c393d8bac53299a8b94faf720055aa261f53d73036aca3f6e0",
            "purchase_vouchers.sql": "bb86dd1bafd555d11ae38585295665178d0d74fb62ae817672ac57100fda9bfd",
            "purchase_topup.sql": "2f51224fc1bd6cde607fcfea867f61bd09bd278e1c7953da4bc65f453b616119",
            "replace_code.sql": "9d106ee80d59c1f5b0871a729f95d8e40f109ae746934579d10294dcc83bcc76",
        },
    )
