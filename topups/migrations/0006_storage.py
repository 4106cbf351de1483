"""How the hot tables of this app are kept."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("topups", "0005_inputs_of")]
    operations = [
        # Django's index for LIKE 'begins with …'; references are looked up whole.
        migrations.RunSQL(
            "DROP INDEX IF EXISTS topups_fulfilment_order_reference_f2ff2bc3_like",
            migrations.RunSQL.noop,
        ),
        # Every purchase of a package whose stock is counted updates its row: room on the page keeps
        # the update there (HOT: no index is touched).
        migrations.RunSQL(
            "ALTER TABLE topups_topupproduct SET (fillfactor = 25,"
            " autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)",
            "ALTER TABLE topups_topupproduct RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)",
        ),
    ]
