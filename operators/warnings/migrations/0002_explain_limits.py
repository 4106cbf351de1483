"""Adds an error message for negative limits. Changes nothing in the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("warnings", "0001_initial"),
    ]

    operations = [
        migrations.AlterConstraint(
            model_name="warningrule",
            name="warnings_rule_limit",
            constraint=models.CheckConstraint(
                condition=models.Q(("limit__gte", 0)),
                name="warnings_rule_limit",
                violation_error_message="Enter a limit of at least 0.",
            ),
        ),
    ]
