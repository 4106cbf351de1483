"""Showing a secret to a person: voucher codes and new API keys.

Each function writes its audit entry first and commits it with what it did; only then does the
caller hold a secret. So nothing can be shown that the trail does not tell of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from accounts import keys
from accounts.models import ApiClient, ApiKey
from audit.models import AuditAction
from audit.services import record_action
from catalogue.codes import Code, open_code
from catalogue.models import VoucherCode
from orders.models import Order


@dataclass(frozen=True)
class Revealed:
    """A code and the row it came from."""

    pk: int
    code: Code


def reveal_codes(
    *, codes: Sequence[VoucherCode], order: Order | None, actor: User, note: str
) -> list[Revealed]:
    """Opens the codes, with one audit entry each. Raises sealing.CannotOpen, and leaves no entry
    where not all of them open."""
    with transaction.atomic(durable=True):
        for code in codes:
            record_action(
                actor=actor,
                action=AuditAction.CODE_REVEALED,
                on=code,
                reference=order.reference if order else "",
                note=note,
            )
        return [Revealed(code.pk, open_code(code.sealed)) for code in codes]


def issue_key(*, client: ApiClient, actor: User, note: str = "") -> str:
    """Gives the client one more key and returns it."""
    with transaction.atomic(durable=True):
        key = keys.issue_key(client=client)
        _record(AuditAction.KEY_ISSUED, client=client, key=key, actor=actor, note=note)
    return key


def rotate_key(*, client: ApiClient, overlap: timedelta, actor: User, note: str = "") -> str:
    """Gives the client a new key and returns it; its other keys end after `overlap`."""
    with transaction.atomic(durable=True):
        key = keys.rotate_key(client=client, overlap=overlap)
        _record(AuditAction.KEY_ROTATED, client=client, key=key, actor=actor, note=note)
    return key


def revoke_key(*, key: ApiKey, actor: User, note: str = "") -> bool:
    """Ends a key at once. Returns False where it was revoked before."""
    with transaction.atomic(durable=True):
        revoked = keys.revoke_key(prefix=key.prefix)
        if revoked:
            record_action(
                actor=actor,
                action=AuditAction.KEY_REVOKED,
                on=key.client,
                reference=key.prefix,
                note=note,
            )
    return revoked


def _record(action: AuditAction, *, client: ApiClient, key: str, actor: User, note: str) -> None:
    record_action(actor=actor, action=action, on=client, reference=keys.prefix_of(key), note=note)


def record_issued(*, client: ApiClient, prefix: str, **_signal: object) -> None:
    """A command on the server issued a key."""
    record_action(actor=None, action=AuditAction.KEY_ISSUED, on=client, reference=prefix)


def record_rotated(*, client: ApiClient, prefix: str, **_signal: object) -> None:
    """A command on the server gave the client a new key."""
    record_action(actor=None, action=AuditAction.KEY_ROTATED, on=client, reference=prefix)


def record_revoked(*, client: ApiClient, prefix: str, **_signal: object) -> None:
    """A command on the server ended a key."""
    record_action(actor=None, action=AuditAction.KEY_REVOKED, on=client, reference=prefix)
