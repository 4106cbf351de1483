"""How the hot table of this app is kept."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0002_functions")]
    operations = [
        # A record is written small and updated twice within milliseconds, at last with the answer.
        # With room for that on its page neither update touches an index (HOT). Cleanup deletes a
        # seventh of the table a day; the default would wait for a fifth.
        migrations.RunSQL(
            "ALTER TABLE idempotency_idempotencyrecord SET (fillfactor = 70,"
            " autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02)",
            "ALTER TABLE idempotency_idempotencyrecord RESET (fillfactor,"
            " autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor)",
        ),
    ]
