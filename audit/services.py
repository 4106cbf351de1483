"""Adds entries to the audit trail."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from structlog.contextvars import get_contextvars

from audit.models import REFERENCE_LENGTH, AuditAction, AuditEntry

Changes = Mapping[str, tuple[Any, Any]]  # the old and the new value by name


def record_action(
    *,
    actor: User | None,
    action: AuditAction,
    on: Model | type[Model],
    reference: str = "",
    note: str = "",
    changes: Changes | None = None,
) -> AuditEntry:
    """Adds one entry; call it in the transaction of the action that it records.

    `actor` is None for a command on the server, whose user is recorded by name, and for what the
    service does by itself. `on` is the object, or its class if the action concerns many.
    `reference` is the name people use for the object, such as the reference of an order or the
    prefix of a key; a long one is cut. `changes` must hold no secret.
    """
    context = get_contextvars()
    return AuditEntry.objects.create(
        actor=actor,
        actor_name="" if actor else context.get("shell_actor", ""),
        action=action,
        object_type=on._meta.label_lower,
        object_id="" if isinstance(on, type) else str(on.pk),
        reference=reference[:REFERENCE_LENGTH],
        note=note,
        changes={name: list(pair) for name, pair in (changes or {}).items()},
        request_id=context.get("request_id", ""),
    )


def find_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """The values of `after` that differ from `before`. A missing value is None."""
    return {
        name: (before.get(name), value)
        for name, value in after.items()
        if before.get(name) != value
    }
