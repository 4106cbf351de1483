"""Refuses a failed fulfilment without a reason, in new rows. The next migration checks the others."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("topups", "0005_index_players")]
    operations = [
        AddConstraintNotValid(
            model_name="fulfilment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "failure_reason__in",
                        ["wrong_id", "no_stock", "fulfilment_failed"],
                    ),
                    ("failure_reason__isnull", False),
                    ("status", "failed"),
                )
                | models.Q(models.Q(("status", "failed"), _negated=True), ("failure_reason", None)),
                name="topups_fulfilment_failed_for_a_reason",
            ),
        ),
    ]
