import django.core.serializers.json
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
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "actor_name",
                    models.CharField(
                        blank=True,
                        db_default="",
                        help_text="Who ran the command on the server.",
                        max_length=200,
                    ),
                ),
                ("action", models.CharField(max_length=32)),
                ("object_type", models.CharField(max_length=100)),
                ("object_id", models.CharField(max_length=64)),
                ("reference", models.CharField(blank=True, db_default="", max_length=64)),
                (
                    "request_id",
                    models.CharField(
                        blank=True, db_default="", max_length=64, verbose_name="request ID"
                    ),
                ),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                ("note", models.CharField(blank=True, db_default="", max_length=500)),
                (
                    "changes",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty for a command on the server.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audit_entries",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "indexes": [
                    models.Index(fields=["created_at", "id"], name="audit_entry_by_time"),
                    models.Index(
                        fields=["action", "created_at", "id"], name="audit_entry_by_action"
                    ),
                    models.Index(fields=["actor", "created_at", "id"], name="audit_entry_by_actor"),
                    models.Index(
                        condition=models.Q(("actor_name", ""), _negated=True),
                        fields=["actor_name", "created_at", "id"],
                        name="audit_entry_by_actor_name",
                    ),
                    models.Index(
                        condition=models.Q(("reference", ""), _negated=True),
                        fields=["reference", "created_at", "id"],
                        name="audit_entry_by_reference",
                    ),
                    models.Index(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=["request_id"],
                        name="audit_entry_by_request",
                    ),
                    models.Index(
                        fields=["object_type", "object_id", "created_at", "id"],
                        name="audit_entry_about",
                    ),
                ],
                "permissions": [("export_lists", "Can download lists as files")],
            },
        ),
    ]
