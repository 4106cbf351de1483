from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("wallets", "0011_limit_the_sum_of_a_day"),
    ]

    operations = [
        ValidateConstraint(model_name="bookinglimit", name="wallets_limit_per_day_not_negative"),
    ]
