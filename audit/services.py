"""Adds entries to the audit trail."""

from django.contrib.auth.models import User
from django.db.models import Model
from structlog.contextvars import get_contextvars

from audit.models import AuditAction, AuditEntry


def record_action(
    *, actor: User | None, action: AuditAction, on: Model, reference: str = "", note: str = ""
) -> AuditEntry:
    """Adds one entry; call it in the transaction of the action that it records.

    `actor` is None for a command on the server, whose user is recorded by name, and for what the
    service does by itself. `reference` is the name people use for the object, such as the reference
    of an order or the prefix of a key.
    """
    context = get_contextvars()
    return AuditEntry.objects.create(
        actor=actor,
        actor_name="" if actor else context.get("shell_actor", ""),
        action=action,
        object_type=on._meta.label_lower,
        object_id=str(on.pk),
        reference=reference,
        note=note,
        request_id=context.get("request_id", ""),
    )
