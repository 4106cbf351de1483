from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [("topups", "0010_promise_times")]

    operations = [
        ValidateConstraint(model_name="topupproduct", name="topups_product_promise_is_positive"),
    ]
