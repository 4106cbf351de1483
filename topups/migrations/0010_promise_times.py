import django.core.validators
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("topups", "0009_find_players")]

    operations = [
        migrations.AddField(
            model_name="topupproduct",
            name="promised_minutes",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="Minutes from the purchase to the delivery. Empty: nothing is promised."
                " Merchants do not see it.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        AddConstraintNotValid(
            model_name="topupproduct",
            constraint=models.CheckConstraint(
                name="topups_product_promise_is_positive",
                condition=models.Q(promised_minutes=None) | models.Q(promised_minutes__gte=1),
            ),
        ),
    ]
