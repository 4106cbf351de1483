from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("merchants", "0004_name_who_approved")]

    operations = [
        # Until the migration is committed: the check reads the whole table.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        ValidateConstraint("invitation", "merchants_invitation_approved_by_another"),
        ValidateConstraint("factorreset", "merchants_factorreset_approved_by_another"),
    ]
