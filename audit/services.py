"""Adds entries to the audit trail."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model
from structlog.contextvars import get_contextvars

from audit.actor import current_actor, current_address
from audit.models import REFERENCE_LENGTH, AuditAction, AuditEntry
from core.database.columns import NOTE_LENGTH

BATCH = 500  # entries in one statement
# Changes of the price list of an account, and of the entries of a list.
OF_PRICES = frozenset({"price_list", "valid_from", "valid_until"})
Changes = Mapping[str, tuple[Any, Any]]  # the old and the new value by name


def record_action(
    *,
    actor: User | str | None,
    action: AuditAction,
    on: Model | type[Model],
    reference: str = "",
    note: str = "",
    changes: Changes | None = None,
) -> AuditEntry:
    """Adds one entry; call it in the transaction of the action that it records.

    `actor` is a user, or a name such as `shell:anna`. None stands for who runs the present command,
    and for the service itself outside of one. `on` is the object, or its class if the action
    concerns many. `reference` is the name people use for the object, such as the reference of an
    order or the prefix of a key. Long references and notes are cut. `changes` must hold no secret.
    """
    note = note or _agreement(action, changes or {})
    about = {"reference": reference[:REFERENCE_LENGTH], "note": note[:NOTE_LENGTH]}
    return AuditEntry.objects.create(**_columns(actor, action, on, changes or {}), **about)


def record_changes(rows: Iterable[tuple[Model, Changes]]) -> None:
    """Adds an entry for each of many rows that one action changed, such as an import.

    It names the person or program that acts at present. Call it in the transaction of the changes.
    """
    record_on_rows(
        (
            (change_action(changes), row, _agreement(change_action(changes), changes), changes)
            for row, changes in rows
            if changes
        ),
        actor=current_actor(),
    )


def record_on_rows(
    entries: Iterable[tuple[AuditAction, Model, str, Changes]], *, actor: User | None
) -> None:
    """As `record_action`, of many rows at once: each entry has its action, row, note and
    changes. The reference is the name of the row."""
    AuditEntry.objects.bulk_create(
        [
            AuditEntry(
                **_columns(actor, action, row, changes),
                reference=str(row)[:REFERENCE_LENGTH],
                note=note[:NOTE_LENGTH],
            )
            for action, row, note, changes in entries
        ],
        batch_size=BATCH,
    )


def _agreement(action: AuditAction, changes: Changes) -> str:
    """Names who asked for a low price and who confirms it (operators/imports/low_prices.py)."""
    is_price = action == AuditAction.PRICE_CHANGED or not OF_PRICES.isdisjoint(changes)
    return str(get_contextvars().get("agreement", "")) if is_price else ""


def _columns(
    actor: User | str | None, action: AuditAction, on: Model | type[Model], changes: Changes
) -> dict[str, Any]:
    context = get_contextvars()
    user, name = (None, actor) if isinstance(actor, str) else (actor, "")
    return {
        "actor": user,
        "actor_name": "" if user else name or context.get("shell_actor", ""),
        "action": action,
        "object_type": on._meta.label_lower,
        "object_id": "" if isinstance(on, type) else str(on.pk),
        "changes": {name: list(pair) for name, pair in changes.items()},
        "request_id": context.get("request_id", ""),
        "address": current_address(),
    }


def find_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """The values of `after` that differ from `before`. A missing value is None."""
    return {
        name: (before.get(name), value)
        for name, value in after.items()
        if before.get(name) != value
    }


def change_action(changes: Changes) -> AuditAction:
    """The action of an entry about these changes of a row."""
    is_price = "price" in changes or "next_price" in changes
    return AuditAction.PRICE_CHANGED if is_price else AuditAction.CHANGED
