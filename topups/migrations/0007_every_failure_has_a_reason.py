"""Checks the rows that were there before, and drops the constraint that let NULL pass."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("topups", "0006_failed_for_a_reason")]
    operations = [
        ValidateConstraint("fulfilment", "topups_fulfilment_failed_for_a_reason"),
        migrations.RemoveConstraint("fulfilment", "topups_fulfilment_failure_has_a_reason"),
    ]
