"""How the hot tables of this app are kept."""

from django.db import migrations

REVERSE = migrations.RunSQL.noop


class Migration(migrations.Migration):
    dependencies = [("orders", "0005_orders_of")]
    operations = [
        # Django adds an index for LIKE 'begins with …' to every unique text. References are looked
        # up whole, so each order would pay for an index that nobody reads.
        migrations.RunSQL("DROP INDEX IF EXISTS orders_order_reference_d902bed1_like", REVERSE),
        # Every purchase updates its client's row. Room on the page keeps the update there (HOT: no
        # index is touched), and old versions go before long snapshots make them a chain to walk.
        migrations.RunSQL(
            "ALTER TABLE orders_clientcounter SET (fillfactor = 25,"
            " autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)",
            "ALTER TABLE orders_clientcounter RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)",
        ),
        # Append-only: nothing to clean, but rows to freeze. A little often, not a night of it once.
        migrations.RunSQL(
            "ALTER TABLE orders_order SET (autovacuum_vacuum_insert_scale_factor = 0.02,"
            " autovacuum_analyze_scale_factor = 0.02)",
            "ALTER TABLE orders_order RESET (autovacuum_vacuum_insert_scale_factor,"
            " autovacuum_analyze_scale_factor)",
        ),
    ]
