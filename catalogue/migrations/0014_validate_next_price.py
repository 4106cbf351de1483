from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0013_schedule_prices")]
    operations = [
        ValidateConstraint(
            model_name="shelf", name="catalogue_shelf_next_price_has_limits_and_a_time"
        ),
    ]
