from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("topups", "0004_schedule_prices")]
    operations = [
        ValidateConstraint(
            model_name="topupproduct", name="topups_product_next_price_has_limits_and_a_time"
        ),
    ]
