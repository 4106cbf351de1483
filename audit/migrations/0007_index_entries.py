"""Indexes of the audit trail."""

from django.db import migrations, models

from core.database.migrations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("audit", "0006_add_address")]
    operations = [
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(name="audit_entry_by_time", fields=["created_at", "id"]),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(name="audit_entry_by_action", fields=["action", "created_at", "id"]),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(name="audit_entry_by_actor", fields=["actor", "created_at", "id"]),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(
                name="audit_entry_by_actor_name",
                fields=["actor_name", "created_at", "id"],
                condition=~models.Q(("actor_name", "")),
            ),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(
                name="audit_entry_by_reference",
                fields=["reference", "created_at", "id"],
                condition=~models.Q(("reference", "")),
            ),
        ),
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(
                name="audit_entry_by_request",
                fields=["request_id"],
                condition=~models.Q(("request_id", "")),
            ),
        ),
    ]
