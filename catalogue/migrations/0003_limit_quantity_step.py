import django.core.validators
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    """No order has more than 100 codes, so no shelf sells them in larger units."""

    dependencies = [
        ("catalogue", "0002_sql"),
    ]
    operations = [
        migrations.AlterField(
            model_name="shelf",
            name="quantity_step",
            field=models.PositiveSmallIntegerField(
                default=1,
                help_text="Number of codes in one unit.",
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(100),
                ],
            ),
        ),
        AddConstraintNotValid(
            model_name="shelf",
            constraint=models.CheckConstraint(
                condition=models.Q(("quantity_step__lte", 100)),
                name="catalogue_shelf_quantity_step_has_a_limit",
            ),
        ),
    ]
