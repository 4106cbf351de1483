import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [
        ("topups", "0011_validate_promise"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DeliveryProof",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("transaction_number", models.CharField(blank=True, max_length=100)),
                ("added_at", models.DateTimeField(db_default=Now(), editable=False)),
                (
                    "added_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "fulfilment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proofs",
                        to="topups.fulfilment",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("fulfilment", "token"), name="topups_proof_once_per_form"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="DeliveryFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("content_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField(help_text="In bytes.")),
                ("sealed", models.BinaryField()),
                (
                    "proof",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="file",
                        to="topups.deliveryproof",
                    ),
                ),
            ],
            options={"abstract": False, "default_permissions": ()},
        ),
    ]
