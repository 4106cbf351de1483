from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("topups", "0014_check_statuses_cheaply")]
    operations = [
        ValidateConstraint(
            model_name="fulfilment", name="topups_fulfilment_agrees_with_its_status"
        ),
    ]
