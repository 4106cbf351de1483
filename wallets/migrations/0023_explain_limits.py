"""Says in words what is wrong with a negative limit. The database stays as it is."""

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
                violation_error_message="Enter a sum of a day of at least 0, or none.",
            ),
        ),
    ]
