from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0015_price_by_merchant")]
    operations = [
        # Until the migration is committed: the check reads the whole table.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            "ALTER TABLE accounts_account VALIDATE CONSTRAINT catalogue_list_of_account",
            migrations.RunSQL.noop,
        ),
    ]
