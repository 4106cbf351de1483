import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0002_sql"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="blocked_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.CreateModel(
            name="FactorReset",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "asked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("approved_at", models.DateTimeField(null=True)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="factor_resets",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approved_at", None), ("approved_by", None)),
                            models.Q(
                                ("approved_at__isnull", False),
                                models.Q(("approved_by", models.F("asked_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="merchants_factorreset_approved_by_another",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("approved_at", None)),
                        fields=("user",),
                        name="merchants_factorreset_waits_once",
                    ),
                ],
            },
        ),
    ]
