"""The audit trail: written in the transaction of what it tells of."""

from django.contrib.auth.models import User
from django.db.models import Model
from structlog.contextvars import get_contextvars

from audit.models import AuditAction, AuditEntry


def record_action(
    *, actor: User | None, action: AuditAction, on: Model, reference: str = "", note: str = ""
) -> AuditEntry:
    """Adds one entry. `reference` is what people call the object: an order's, a key's prefix."""
    return AuditEntry.objects.create(
        actor=actor,
        action=action,
        object_type=on._meta.label_lower,
        object_id=str(on.pk),
        reference=reference,
        note=note,
        request_id=get_contextvars().get("request_id", ""),
    )
