"""How the hot tables of this app are kept."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("wallets", "0005_plans_that_are_kept")]
    operations = [
        # Every purchase updates its wallet. Room on the page keeps the update there (HOT: no index
        # is touched), and old versions go before long snapshots make them a chain to walk.
        migrations.RunSQL(
            "ALTER TABLE wallets_wallet SET (fillfactor = 25,"
            " autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)",
            "ALTER TABLE wallets_wallet RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)",
        ),
        # Append-only: nothing to clean, but rows to freeze. A little often, not a night of it once.
        migrations.RunSQL(
            "ALTER TABLE wallets_ledgerentry SET (autovacuum_vacuum_insert_scale_factor = 0.02,"
            " autovacuum_analyze_scale_factor = 0.02)",
            "ALTER TABLE wallets_ledgerentry RESET (autovacuum_vacuum_insert_scale_factor,"
            " autovacuum_analyze_scale_factor)",
        ),
    ]
