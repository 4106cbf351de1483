from django.db import migrations

TABLES = (
    "idempotency_idempotencyrecord",
    "catalogue_shelf",
    "catalogue_vouchercode",
    "topups_topupproduct",
    "topups_fulfilment",
    "wallets_wallet",
    "wallets_ledgerentry",
    "orders_order",
)


class Migration(migrations.Migration):
    """Locks each table that a purchase uses, each in a transaction of its own."""

    atomic = False
    operations = [
        migrations.RunSQL(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS rehearsal integer")
        for table in TABLES
    ]
