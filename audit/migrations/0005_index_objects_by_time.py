"""The newest entries about an object, without a sort of all others."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently, RemoveIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("audit", "0004_record_any_action")]
    operations = [
        AddIndexConcurrently(
            "auditentry",
            models.Index(
                fields=["object_type", "object_id", "created_at", "id"], name="audit_entry_about"
            ),
        ),
        RemoveIndexConcurrently("auditentry", "audit_entry_of_object"),
    ]
