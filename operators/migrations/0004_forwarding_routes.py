"""Where what is forwarded goes. In a transaction of its own: the foreign keys of the one before lock
fulfilments, these lock packages, and a purchase locks a package and then its fulfilment."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalogue", "0005_price_changed_by"),
        ("operators", "0003_telegram"),
        ("topups", "0004_price_changed_by"),
    ]

    operations = [
        migrations.CreateModel(
            name="ForwardingRoute",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "chat_id",
                    models.BigIntegerField(
                        help_text="The chat's id as Telegram has it: a group's is negative.",
                        verbose_name="chat",
                    ),
                ),
                (
                    "topic_id",
                    models.BigIntegerField(
                        blank=True,
                        help_text="Empty: the chat itself, or its General topic.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(2)],
                        verbose_name="topic",
                    ),
                ),
                (
                    "category",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="catalogue.category",
                    ),
                ),
                (
                    "product",
                    models.OneToOneField(
                        blank=True,
                        help_text="This wins over a route of its category.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="topups.topupproduct",
                        verbose_name="package",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("category__isnull", False), ("product", None)),
                            models.Q(("category", None), ("product__isnull", False)),
                            _connector="OR",
                        ),
                        name="operators_route_is_of_one_thing",
                        violation_error_message="A route is of a package or of a category.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("topic_id", None), ("topic_id__gte", 2), _connector="OR"
                        ),
                        name="operators_route_topic_is_a_topic",
                    ),
                ],
            },
        ),
    ]
