"""API keys: issue, rotate, revoke, and look up.

A key reads `vk_<prefix>_<secret>`. The prefix finds the row and may be shown. The secret is 256
random bits, so a plain SHA-256 of the whole key is safe to store.

`issue_key`, `rotate_key` and `revoke_key` write their audit entry in the transaction of the change,
and send `access_changed`, so that the account's members receive an email.
`actor` is the user who asked; None is a command on the server.

Show a key only after its audit entry is committed. Outside a transaction, each function commits
before it returns. Inside one, use `atomic(durable=True)` and show the key after the block.
"""

import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import timedelta
from hmac import compare_digest
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, IntegrityError, transaction
from django.db.models import Model, Q
from django.db.models.base import ModelState
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import KEY_PREFIX_LENGTH, Account, ApiClient, ApiKey
from accounts.signals import access_changed
from audit.models import AuditAction
from audit.services import record_action
from core.database.functions import query
from core.inputs import InputProblem

MAX_OVERLAP_HOURS = 24 * 90
SECRET_LENGTH = 64  # hexadecimal digits
PREFIX_PATTERN = re.compile(rf"[0-9a-f]{{{KEY_PREFIX_LENGTH}}}")
Row = TypeVar("Row", bound=Model)
KeyRow = dict[str, Any]  # a row of accounts/sql/find_key.sql, maybe with more columns
KEY_PATTERN = re.compile(rf"vk_(?P<prefix>{PREFIX_PATTERN.pattern})_[0-9a-f]{{{SECRET_LENGTH}}}")


class AlreadyIssued(InputProblem):
    """The form was sent before, and its key was shown then."""

    def __init__(self, key: ApiKey) -> None:
        super().__init__(
            _(
                "No other key was created: this form has already created the key %(prefix)s. A key"
                " is shown only once. If you did not copy it, revoke it and create another."
            )
            % {"prefix": key.prefix}
        )


def issue_key(
    *, client: ApiClient, actor: User | None, note: str = "", form: UUID | None = None
) -> str:
    """Adds a key to the client and returns it. The key cannot be shown again.

    `form` is the id of the form that asked. Raises AlreadyIssued if it has issued a key before.
    """
    with transaction.atomic():
        key = _add_key(client, form)
        _record(AuditAction.KEY_ISSUED, client, prefix_of(key), actor=actor, note=note)
        _notify(client, gettext_noop("API key issued"), prefix_of(key), actor=actor)
    return key


def rotate_key(
    *,
    client: ApiClient,
    overlap_hours: int,
    actor: User | None,
    note: str = "",
    form: UUID | None = None,
) -> str:
    """Adds a key to the client and returns it. The client's other keys expire after the overlap.

    A key that expires sooner keeps its expiry; an overlap of 0 ends the other keys at once. The
    audit note begins with the overlap. Raises InputProblem for an overlap that is negative or
    longer than MAX_OVERLAP_HOURS, and AlreadyIssued if `form` has issued a key before.
    """
    if not 0 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise InputProblem(
            _("The overlap must be from 0 to %(max_overlap_hours)s hours.")
            % {"max_overlap_hours": MAX_OVERLAP_HOURS}
        )
    with transaction.atomic():
        # Rotations of one client take turns. Two at once would not see each other's new key, and
        # both new keys would stay live.
        ApiClient.objects.select_for_update(no_key=True).get(pk=client.pk)
        end = timezone.now() + timedelta(hours=overlap_hours)
        client.keys.live().filter(Q(expires_at=None) | Q(expires_at__gt=end)).update(expires_at=end)
        key = _add_key(client, form)
        note = f"{overlap_hours} h overlap. {note}".strip()
        _record(AuditAction.KEY_ROTATED, client, prefix_of(key), actor=actor, note=note)
        overlap = f"{overlap_hours} h"
        _notify(
            client, gettext_noop("API keys rotated"), prefix_of(key), actor=actor, Overlap=overlap
        )
    return key


def revoke_key(*, key: ApiKey, actor: User | None, note: str = "") -> bool:
    """Ends a key at once. Returns False if it was already revoked.

    In both cases `key.revoked_at` is the time of the revocation afterwards.
    """
    with transaction.atomic():
        unrevoked = ApiKey.objects.filter(pk=key.pk, revoked_at=None)
        revoked = bool(unrevoked.update(revoked_at=timezone.now()))
        if revoked:
            _record(AuditAction.KEY_REVOKED, key.client, key.prefix, actor=actor, note=note)
            _notify(key.client, gettext_noop("API key revoked"), key.prefix, actor=actor)
    key.refresh_from_db(fields=["revoked_at"])
    return revoked


def find_key(prefix: str) -> ApiKey:
    """The key with this prefix, live or not.

    Raises InputProblem, which does not repeat the text: it may be a whole key.
    """
    if PREFIX_PATTERN.fullmatch(prefix) is None:
        raise InputProblem(
            f"A prefix is the {KEY_PREFIX_LENGTH} letters and digits between the underscores of a"
            " key. Do not type the whole key: it would stay in your shell's history."
        )
    key = ApiKey.objects.filter(prefix=prefix).first()
    if key is None:
        raise InputProblem(_("There is no key with this prefix."))
    return key


def prefix_of(key: str) -> str:
    """The part of a key that may be shown; empty for text that is not a key."""
    match = KEY_PATTERN.fullmatch(key)
    return match["prefix"] if match else ""


def find_client(key: str) -> ApiClient | None:
    """The client with this live key, with its account; None if there is none."""
    found = find_key_row(key, look_up_key)
    return client_of(found, prefix_of(key)) if found else None


def find_key_row(key: str, look_up: Callable[[str, str], list[KeyRow]]) -> KeyRow | None:
    """The row that `look_up` finds for the prefix and the digest of the key; None if there is none
    or if the key has another digest.

    Looks nothing up for text that is not a key.
    """
    match = KEY_PATTERN.fullmatch(key)
    if match is None:
        return None
    digest = digest_of(key)
    rows = look_up(match["prefix"], digest)
    if not rows or not compare_digest(rows[0]["digest"], digest):
        return None
    return rows[0]


def look_up_key(prefix: str, _digest: str) -> list[KeyRow]:
    return query("accounts_find_key", prefix)


def client_of(row: KeyRow, prefix: str) -> ApiClient:
    """The client, with its account, of a row of accounts/sql/find_key.sql."""
    client = _row_of(
        ApiClient,
        id=row["client_id"],
        account_id=row["account_id"],
        name=row["client_name"],
        enabled=row["client_enabled"],
        rate_limit_per_minute=row["rate_limit_per_minute"],
        allowed_networks=row["allowed_networks"],
    )
    client.key_prefix = prefix
    client.is_only_client = row["is_only_client"]
    client._state.fields_cache["account"] = None
    if row["account_id"] is not None:
        client._state.fields_cache["account"] = _row_of(
            Account,
            id=row["account_id"],
            currency=row["account_currency"],
            enabled=row["account_enabled"],
            price_list_id=row["price_list_id"],
        )
    return client


def _row_of(model: type[Row], **columns: Any) -> Row:
    """A stored row with these columns; reading another one loads it.

    `Model.from_db` does the same, and took more time than anything else in finding a key
    (docs/performance.md).
    """
    row = model.__new__(model)
    row._state = ModelState()
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
    vars(row).update(columns)
    return row


def refuse_repeated_form(form: UUID | None) -> None:
    """Raises AlreadyIssued if this form has issued a key before."""
    earlier = ApiKey.objects.filter(form=form).first() if form else None
    if earlier is not None:
        raise AlreadyIssued(earlier)


def _add_key(client: ApiClient, form: UUID | None) -> str:
    prefix, key = random_key("vk")
    refuse_repeated_form(form)
    try:
        with transaction.atomic():
            ApiKey.objects.create(client=client, prefix=prefix, digest=digest_of(key), form=form)
    except IntegrityError:
        refuse_repeated_form(form)  # the same form, sent twice at once
        raise
    return key


def _record(
    action: AuditAction, client: ApiClient, prefix: str, *, actor: User | None, note: str
) -> None:
    record_action(actor=actor, action=action, on=client, reference=prefix, note=note)


def _notify(
    client: ApiClient, change: str, prefix: str, *, actor: User | None, **facts: str
) -> None:
    facts = {gettext_noop("Key"): prefix, **facts}
    report_access_change(client, change, actor=actor, facts=facts)


def report_access_change(
    client: ApiClient, change: str, *, actor: User | None, facts: dict[str, str]
) -> None:
    """Reports a change of a client's access to the members of its account, if it has one."""
    if client.account is not None:
        access_changed.send(
            ApiClient,
            account=client.account,
            actor=actor,
            change=change,
            facts={gettext_noop("Client"): client.name, **facts},
        )


def random_key(kind: str) -> tuple[str, str]:
    """The prefix and the text of a new key. `kind` comes first in the text."""
    prefix = secrets.token_hex(KEY_PREFIX_LENGTH // 2)
    return prefix, f"{kind}_{prefix}_{secrets.token_hex(SECRET_LENGTH // 2)}"


def digest_of(key: str) -> str:
    """The stored form of a key."""
    return hashlib.sha256(key.encode()).hexdigest()
