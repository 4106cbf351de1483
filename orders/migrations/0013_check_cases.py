from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    dependencies = [
        ("orders", "0012_replace_once"),
    ]
    operations = [
        ValidateConstraint(model_name="order", name="orders_order_is_paid_or_replaces"),
    ]
