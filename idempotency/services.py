"""One purchase per key: claim the key, store the response, or release the key (contract,
"Idempotency rules").

The state is one row per client and key (`IdempotencyRecord`). Each step is one SQL function in
idempotency/sql/, so concurrent requests cannot see or leave a half-done step.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from accounts.models import ApiClient
from core.api.errors import ApiError, ErrorCode, ValidationFailed
from core.database import sealing
from core.database.functions import call
from core.database.key_ring import key_ring
from core.database.sealing import Context
from idempotency.models import BLOCKED, MAX_KEY_BYTES

logger = structlog.get_logger(__name__)

KEY_HEADER = "Idempotency-Key"
_CANONICAL = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    default=lambda number: {"\x00decimal": str(number)},  # no parsed name contains a NUL
)


@dataclass(frozen=True)
class Claim:
    """The right to one attempt of a purchase."""

    client_id: int
    key: str
    fingerprint: bytes
    record_id: int
    attempt: int


@dataclass(frozen=True)
class Replay:
    """A stored success: the exact bytes of the original response."""

    body: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredSuccess:
    """A stored success as it was looked up before the claim: `response` is sealed."""

    fingerprint: bytes
    response: bytes = field(repr=False)


def check_key(key: str | None) -> str:
    """The key, if it can be used; it is never shortened or trimmed.

    Raises `idempotency_key_required`, `idempotency_key_too_long` or `validation_failed`.
    """
    if key is None or not key.strip():
        raise ApiError(ErrorCode.IDEMPOTENCY_KEY_REQUIRED)
    if len(key) > MAX_KEY_BYTES:  # WSGI decodes each byte of a header to one character
        raise ApiError(ErrorCode.IDEMPOTENCY_KEY_TOO_LONG)
    if "," in key:  # the web server joins several headers with one
        raise ValidationFailed({KEY_HEADER: ["Send one key, without a comma, such as a UUID."]})
    if not (key.isascii() and key.isprintable()):
        raise ValidationFailed(
            {KEY_HEADER: ["Use printable ASCII characters only, such as a UUID."]}
        )
    return key


def fingerprint(
    *, endpoint: str, query: list[tuple[str, list[str]]], body: dict[str, Any]
) -> bytes:
    """A SHA-256 of the request: endpoint, query parameters and parsed body.

    Whitespace and the order of members make no difference. Types of values do: `1`, `1.0` and `"1"`
    are different.
    """
    canonical = _CANONICAL.encode([endpoint, sorted(query), body])
    return hashlib.sha256(canonical.encode()).digest()


def claim_key(
    *, client: ApiClient, key: str, fingerprint: bytes, stored: StoredSuccess | None = None
) -> Claim | Replay:
    """Claims the key for one attempt, or returns the stored success. `stored` is the success of
    this client and key, if one was looked up: it never changes, so nothing is claimed.

    Raises `idempotency_key_reused`, `request_in_progress`, or `request_abandoned` with the
    `reference` of the order. idempotency/sql/claim.sql describes the outcomes. Raises
    sealing.CannotOpen, and has claimed nothing, if this process has wrong keys.
    """
    key_ring()  # a purchase seals its response: no claim with keys that others cannot open
    row: dict[str, Any]
    if stored is not None:
        same = stored.fingerprint == fingerprint
        row = {"outcome": "replay" if same else "reused", "response": stored.response}
    else:
        row = call(
            "idempotency_claim",
            client.pk,
            key,
            fingerprint,
            settings.IDEMPOTENCY_IN_PROGRESS_SECONDS,
        )
    match row["outcome"]:
        case "claimed":
            return Claim(client.pk, key, fingerprint, row["record_id"], row["attempt"])
        case "replay":
            return Replay(body=open_response(row["response"], response_row(client.pk, key)))
        case "reused":
            raise ApiError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
        case "abandoned":
            raise ApiError(ErrorCode.REQUEST_ABANDONED, reference=row["order_reference"])
        case _:
            raise ApiError(ErrorCode.REQUEST_IN_PROGRESS)


def store_response(*, claim: Claim, body: bytes) -> None:
    """Stores the response for replays.

    A database error is logged, not raised: the purchase is committed, and the client gets its
    response. A later retry then gets `request_abandoned`, and the client reads the order.
    """
    row = response_row(claim.client_id, claim.key)
    sealed = sealing.seal(body, Context.REPLAY_BODY, row)
    try:
        call("idempotency_store_response", claim.record_id, claim.attempt, sealed)
    except DatabaseError as error:
        logger.error("replay_not_stored", record=claim.record_id, cause=type(error).__name__)


def response_row(client_id: int, key: str) -> bytes:
    """The row that a stored response is bound to: it opens for this client and key only."""
    return f"{client_id}:{key}".encode()


def open_response(sealed: bytes | memoryview, row: bytes) -> bytes:
    """The stored response of the record that `row` names. Raises sealing.CannotOpen."""
    return sealing.open_sealed(sealed, Context.REPLAY_BODY, row)


def release_key(claim: Claim) -> None:
    """Gives up the attempt, so that the client may send the request again."""
    call("idempotency_release", claim.record_id, claim.attempt)


def end_attempt(claim: Claim) -> bool:
    """Ends the attempt unless it has bought. Returns whether a retry may now buy in its place."""
    row = call(
        "idempotency_end_attempt",
        claim.record_id,
        claim.attempt,
        settings.IDEMPOTENCY_IN_PROGRESS_SECONDS,
    )
    ended: bool = row["ended"]
    return ended


def block_key(*, client_id: int, key: str, fingerprint: bytes, reference: str) -> None:
    """Blocks the key of a purchase that a restore lost.

    A retry then gets `request_abandoned` with `reference`, and never buys again. Records of
    purchases that the database has stay as they are.

    `started_at` is BLOCKED, because the attempt is over. `created_at` and `bought_at` are some
    days in the future, so cleanup keeps the record as long as a stored success.
    """
    ahead = settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS - settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_idempotencyrecord AS record
                   (client_id, key, fingerprint, attempt, created_at, started_at, order_reference,
                    bought_at)
            SELECT %(client)s, %(key)s, %(fingerprint)s, 1, ahead, %(blocked)s, %(reference)s,
                   ahead
              FROM (SELECT now() + make_interval(days => %(days)s) AS ahead) AS times
            ON CONFLICT (client_id, key) DO UPDATE
               SET fingerprint = EXCLUDED.fingerprint, created_at = EXCLUDED.created_at,
                   started_at = EXCLUDED.started_at, bought_at = EXCLUDED.bought_at,
                   order_reference = EXCLUDED.order_reference
             WHERE record.order_reference IS NULL
            """,
            {
                "client": client_id,
                "key": key,
                "fingerprint": fingerprint,
                "reference": reference,
                "blocked": BLOCKED,
                "days": max(ahead, 0),
            },
        )
