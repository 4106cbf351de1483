from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("topups", "0009_promise_times")]

    operations = [
        # Until the migration is committed: the check reads the whole table.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        ValidateConstraint("topupproduct", "topups_product_promise_is_positive"),
    ]
