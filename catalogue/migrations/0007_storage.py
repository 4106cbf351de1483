"""How the hot tables of this app are kept."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0006_plans_that_are_kept")]
    operations = [
        # Every sale updates its shelf. Room on the page keeps the update there (HOT: no index is
        # touched), and old versions go before long snapshots make them a chain to walk.
        migrations.RunSQL(
            "ALTER TABLE catalogue_shelf SET (fillfactor = 25,"
            " autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)",
            "ALTER TABLE catalogue_shelf RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)",
        ),
        # A sale leaves a dead entry at the front of the index of unsold codes, where the next sale
        # begins to read. The default would clean up after a fifth of all codes: two million of ten.
        # A tenth of each page stays free, so that a sold code stays on its page.
        migrations.RunSQL(
            "ALTER TABLE catalogue_vouchercode SET (fillfactor = 90,"
            " autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,"
            " autovacuum_analyze_scale_factor = 0.02)",
            "ALTER TABLE catalogue_vouchercode RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold,"
            " autovacuum_analyze_scale_factor)",
        ),
    ]
