from django.db import migrations


class Migration(migrations.Migration):
    """Builds an index on a table that grows, without a lock that purchases wait for."""

    atomic = False
    dependencies = [("rehearsal", "0002_install_functions")]
    operations = [
        migrations.RunSQL(
            "CREATE INDEX CONCURRENTLY rehearsal_orders ON orders_order (rehearsal, id)"
        )
    ]
