"""Adds an error message for negative limits. Changes nothing in the database."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0022_check_old_kinds"),
    ]

    operations = [
        migrations.AlterConstraint(
            model_name="bookinglimit",
            name="wallets_limit_amount_not_negative",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gte", 0)),
                name="wallets_limit_amount_not_negative",
                violation_error_message="Enter an amount of at least 0.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="bookinglimit",
            name="wallets_limit_per_day_not_negative",
            constraint=models.CheckConstraint(
                condition=models.Q(("per_day", None), ("per_day__gte", 0), _connector="OR"),
                name="wallets_limit_per_day_not_negative",
                violation_error_message="The sum of a day must be at least 0. Leave it empty for no limit.",
            ),
        ),
    ]
