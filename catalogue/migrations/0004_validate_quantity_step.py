from django.db import migrations

from core.database.migrations import ValidateConstraint


class Migration(migrations.Migration):
    """Stops if a shelf has a larger quantity step: lower it first. Nobody could buy from it."""

    dependencies = [
        ("catalogue", "0003_limit_quantity_step"),
    ]
    operations = [
        ValidateConstraint(model_name="shelf", name="catalogue_shelf_quantity_step_has_a_limit"),
    ]
