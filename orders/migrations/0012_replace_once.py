from django.db import migrations, models

INDEX = "orders_order_once_per_case"


class Migration(migrations.Migration):
    """A case has one replacement. The index is built while purchases go on, and built again after
    an interruption."""

    atomic = False
    dependencies = [
        ("orders", "0011_keep_cases"),
    ]
    operations = [
        migrations.RunSQL(
            [
                "SET statement_timeout = 0",
                "SET lock_timeout = 0",
                f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}",
                f"CREATE UNIQUE INDEX CONCURRENTLY {INDEX} ON orders_order (case_id)"
                " WHERE case_id IS NOT NULL",
                "RESET statement_timeout",
                "RESET lock_timeout",
            ],
            reverse_sql=f"DROP INDEX IF EXISTS {INDEX}",
            state_operations=[
                migrations.AddConstraint(
                    model_name="order",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("case_id__isnull", False)),
                        fields=("case_id",),
                        name=INDEX,
                    ),
                ),
            ],
        ),
    ]
