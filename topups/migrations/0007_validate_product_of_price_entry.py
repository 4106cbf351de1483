from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("topups", "0006_price_by_merchant")]
    operations = [
        # Until the migration is committed: the check reads the whole table.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            "ALTER TABLE catalogue_pricelistentry VALIDATE CONSTRAINT topups_product_of_price_entry",
            migrations.RunSQL.noop,
        ),
    ]
