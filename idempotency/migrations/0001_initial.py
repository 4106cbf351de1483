import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=128)),
                ("fingerprint", models.BinaryField()),
                ("attempt", models.PositiveIntegerField(default=1)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("order_reference", models.CharField(blank=True, max_length=26, null=True)),
                ("bought_at", models.DateTimeField(null=True)),
                ("response", models.BinaryField(null=True)),
                (
                    "client",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="accounts.apiclient",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="idempotency_record_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("client", "key"), name="idempotency_record_client_and_key"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("response", None), ("order_reference__isnull", False), _connector="OR"
                        ),
                        name="idempotency_record_success_has_an_order",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("bought_at", None), ("order_reference", None)),
                            models.Q(
                                ("bought_at__isnull", False), ("order_reference__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="idempotency_record_order_has_a_time",
                    ),
                ],
            },
        ),
    ]
