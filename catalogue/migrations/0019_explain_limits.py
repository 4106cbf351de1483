"""Adds an error message for a cost without a currency. Changes nothing in the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0018_delete_with_the_batch"),
    ]

    operations = [
        migrations.AlterConstraint(
            model_name="batch",
            name="catalogue_batch_cost_has_a_currency",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("cost_currency", ""), ("unit_cost", None)),
                    models.Q(("cost_currency__regex", "^[A-Z]{3}$"), ("unit_cost__gte", 0)),
                    _connector="OR",
                ),
                name="catalogue_batch_cost_has_a_currency",
                violation_error_message="Enter a cost of at least 0 and its currency, or leave both empty.",
            ),
        ),
    ]
