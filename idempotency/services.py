"""One purchase per key: claim it, store the answer, or release it (contract, "Idempotency rules").

The state lives in one row per client and key; each step here is one SQL function in
`idempotency/sql/`, so that it is atomic whoever races with it.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError

from accounts.models import ApiClient
from config.api.errors import ApiError, ErrorCode, ValidationFailed
from config.database import sealing
from config.database.functions import call
from config.database.sealing import Context
from idempotency.models import MAX_KEY_BYTES

logger = structlog.get_logger(__name__)

HEADER = "Idempotency-Key"
_CANONICAL = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    default=lambda number: {"\x00decimal": str(number)},  # no parsed name holds a NUL
)


@dataclass(frozen=True)
class Claim:
    """The right to carry out one attempt of one purchase."""

    record_id: int
    attempt: int


@dataclass(frozen=True)
class Replay:
    """A stored success: the exact bytes of the original creation response."""

    body: bytes = field(repr=False)


def check_key(key: str | None) -> str:
    """Returns a usable key. Raises `idempotency_key_required`, `idempotency_key_too_long` or
    `validation_failed`; a key is never shortened or trimmed."""
    if key is None or not key.strip():
        raise ApiError(ErrorCode.IDEMPOTENCY_KEY_REQUIRED)
    if len(key) > MAX_KEY_BYTES:  # WSGI hands over each byte of a header as one character
        raise ApiError(ErrorCode.IDEMPOTENCY_KEY_TOO_LONG)
    if not (key.isascii() and key.isprintable()):
        raise ValidationFailed({HEADER: ["Use printable ASCII characters only."]})
    return key


def fingerprint(
    *, endpoint: str, query: list[tuple[str, list[str]]], body: dict[str, Any]
) -> bytes:
    """A digest of what was asked: endpoint, query parameters and parsed body.

    Whitespace and the order of members make no difference; types of values do (`1`, `1.0`, `"1"`).
    """
    canonical = _CANONICAL.encode([endpoint, sorted(query), body])
    return hashlib.sha256(canonical.encode()).digest()


def claim_key(*, client: ApiClient, key: str, fingerprint: bytes) -> Claim | Replay:
    """Claims the key for one attempt, or returns the stored success.

    Raises `idempotency_key_reused`, `request_in_progress`, or `request_abandoned` with the
    `reference` of the order.
    """
    row = call(
        "idempotency_claim",
        client.pk,
        key,
        fingerprint,
        settings.IDEMPOTENCY_IN_PROGRESS_SECONDS,
    )
    match row["outcome"]:
        case "claimed":
            return Claim(record_id=row["record_id"], attempt=row["attempt"])
        case "replay":
            return Replay(body=sealing.open_sealed(row["response"], Context.REPLAY_BODY))
        case "reused":
            raise ApiError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
        case "abandoned":
            raise ApiError(ErrorCode.REQUEST_ABANDONED, reference=row["order_reference"])
        case _:
            raise ApiError(ErrorCode.REQUEST_IN_PROGRESS)


def store_response(*, claim: Claim, body: bytes) -> None:
    """Keeps the creation response for replays.

    Never raises for a lost database: the purchase is committed and its answer is at hand. A retry
    then learns `request_abandoned`, and the order is read with GET.
    """
    sealed = sealing.seal(body, Context.REPLAY_BODY)
    try:
        call("idempotency_store_response", claim.record_id, claim.attempt, sealed)
    except DatabaseError as error:
        logger.error("replay_not_stored", record=claim.record_id, cause=type(error).__name__)


@contextmanager
def released_on_refusal(claim: Claim) -> Iterator[None]:
    """Forgets the key where the block ends in a refusal (4xx): the same request may come again.

    Any other failure leaves the key in progress, because the outcome is unknown.
    """
    try:
        yield
    except ApiError as refusal:
        if refusal.code.status < 500:
            call("idempotency_release", claim.record_id, claim.attempt)
        raise
