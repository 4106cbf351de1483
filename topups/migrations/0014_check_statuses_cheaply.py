from pathlib import Path

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Func

from core.database.migrations import install_sql

OLD = (
    "topups_fulfilment_status_is_known",
    "topups_fulfilment_claimed_while_processing",
    "topups_fulfilment_failed_for_a_reason",
    "topups_fulfilment_refund_only_after_failure",
    "topups_fulfilment_closed_when_ended",
)


class Migration(migrations.Migration):
    """The five rules of a status become one function (topups/sql/statuses.sql)."""

    dependencies = [("topups", "0013_keep_proofs")]
    operations = [
        *install_sql(
            Path(__file__).parents[1] / "sql",
            {"statuses.sql": "11c0e1ef8272874bd5b669c42c2ad00c50ae3a0e0ee824a2d100cc96e9e9569d"},
        ),
        AddConstraintNotValid(
            model_name="fulfilment",
            constraint=models.CheckConstraint(
                name="topups_fulfilment_agrees_with_its_status",
                condition=Func(
                    *("status", "failure_reason", "claimed_by", "closed_at"),
                    *("refund_due_at", "refunded_at"),
                    function="topups_agrees_with_status",
                    output_field=models.BooleanField(),
                ),
            ),
        ),
        *(migrations.RemoveConstraint(model_name="fulfilment", name=name) for name in OLD),
    ]
