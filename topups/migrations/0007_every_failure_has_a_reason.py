"""Checks the rows that were there before. A later migration drops the constraint it replaces."""

from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("topups", "0006_failed_for_a_reason")]
    operations = [ValidateConstraint("fulfilment", "topups_fulfilment_failed_for_a_reason")]
