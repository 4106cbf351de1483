import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [
        ("sign_in", "0002_manage_staff"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="TwoPersonChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("what", models.CharField(max_length=500)),
                (
                    "asked_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("approved_at", models.DateTimeField(null=True)),
                *(
                    (
                        name,
                        models.ForeignKey(
                            null=name != "asked_by",
                            on_delete=django.db.models.deletion.PROTECT,
                            related_name="+",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    )
                    for name in ("about", "asked_by", "approved_by")
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        name="sign_in_change_waits_once",
                        fields=["about", "what"],
                        condition=Q(approved_at=None),
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        name="sign_in_change_approved_by_another",
                        condition=Q(approved_by=None, approved_at=None)
                        | (
                            Q(approved_by__isnull=False, approved_at__isnull=False)
                            & ~Q(approved_by=F("asked_by"))
                        ),
                    ),
                ],
            },
        ),
    ]
