from django.db import migrations, models

from core.database.migrations import AddUniqueConcurrently


class Migration(migrations.Migration):
    """A case has one replacement."""

    atomic = False
    dependencies = [
        ("orders", "0011_keep_cases"),
    ]
    operations = [
        AddUniqueConcurrently(
            model_name="order",
            constraint=models.UniqueConstraint(
                condition=models.Q(("case_id__isnull", False)),
                fields=("case_id",),
                name="orders_order_once_per_case",
            ),
        ),
    ]
