import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CompanyIdentity",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("email", models.EmailField(blank=True, default="", max_length=254)),
                (
                    "linked_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("signed_in_at", models.DateTimeField(editable=False, null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="company_identity",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "company identities",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="sign_in_company_identity_once"
                    )
                ],
                "permissions": [
                    ("manage_staff", "Can add staff, give and make roles, and end access")
                ],
            },
        ),
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
                ("ended_at", models.DateTimeField(null=True)),
                ("right", models.CharField(default="", max_length=100)),
                ("data", models.JSONField(default=dict)),
                (
                    "about",
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
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("approved_at", None)),
                        fields=["asked_at"],
                        name="sign_in_change_waits",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("approved_at", None)),
                        fields=("about", "what"),
                        name="sign_in_change_waits_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("approved_at", None), ("approved_by", None)),
                            models.Q(
                                ("approved_at__isnull", False),
                                ("approved_by__isnull", False),
                                models.Q(("approved_by", models.F("asked_by")), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="sign_in_change_approved_by_another",
                    ),
                ],
            },
        ),
    ]
