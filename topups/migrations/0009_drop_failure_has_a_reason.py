"""Drops the constraint that let NULL pass. It needs a lock that may not be free, so the check of all
rows is in a migration before it and is not repeated."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("topups", "0008_rename_labels")]
    operations = [
        migrations.RemoveConstraint("fulfilment", "topups_fulfilment_failure_has_a_reason"),
    ]
