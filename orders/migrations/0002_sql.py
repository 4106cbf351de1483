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
            "constraints.sql": "98d92ea74c92881dd7e84e3c84ee6780b51f7ad9fd61b452205cbb1d93f98706",
            "add.sql": "44a6b92f3d7218e43b09f3b6cd8c9ab0fe7db98c60789f1df56d059b6cecc504",
            "purchase_vouchers.sql": "73cd166dd1f46af58717b839db6fe161c1f91651d7f1588f766cfd15a2239720",
            "purchase_topup.sql": "d7279996907e2b33ffd984661b77b25ef6f70119eb90b8f1123951fcd0526f94",
            "orders_of.sql": "dd20056b902dbed9742f4cf943ab66af5c844c989f28130166c0b2c41b97eba4",
            "spend_of_account.sql": "00b9921b17ad789d8938bb25df6d63cdea9222f6a4072b4b16c6b31ac8f571b2",
            "storage.sql": "a2416381df91a5508a2340e676025fa14f327f305477227cfcc3be0afee1acc6",
        },
    )
