"""Lets an account's failed top-ups be found; only a failure pays for it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # the index is built while sales go on

    dependencies = [("topups", "0008_open_fulfilment")]
    operations = [
        AddIndexConcurrently(
            model_name="fulfilment",
            index=models.Index(
                name="topups_fulfilment_failed",
                fields=["account", "id"],
                condition=models.Q(status="failed"),
            ),
        ),
    ]
