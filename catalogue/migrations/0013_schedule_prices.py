from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalogue", "0012_add_price_lists")]
    operations = [
        migrations.AddField(
            model_name="shelf",
            name="next_price",
            field=models.DecimalField(decimal_places=4, editable=False, max_digits=20, null=True),
        ),
        migrations.AddField(
            model_name="shelf",
            name="next_price_from",
            field=models.DateTimeField(editable=False, null=True),
        ),
        AddConstraintNotValid(
            model_name="shelf",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("next_price", None), ("next_price_from", None)),
                    models.Q(
                        ("next_price__gt", 0),
                        ("next_price__lt", 100000000000000),
                        ("next_price_from__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="catalogue_shelf_next_price_has_limits_and_a_time",
            ),
        ),
    ]
