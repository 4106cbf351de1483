"""Deleting old idempotency records (contract, "Limits": after seven days and one day)."""

import time
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection

from core.database.functions import database_now
from core.database.pauses import pause_afterwards

BATCH = 50  # records per transaction: few, so that purchases wait only briefly
# `clean_again` looks this far back: an attempt may have held a record, or just have ended.
MARGIN = timedelta(minutes=10)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

# The times of a record with an order count from its purchase (`bought_at`). After a takeover the
# purchase may be days younger than the record, and the next retry must not buy again. bought_at has
# no index, so the stamp changes none (HOT); a batch is a range of created_at, which has one.
SUCCESS = """
    response IS NOT NULL AND bought_at <= %(now)s - make_interval(days => %(completed)s)
"""
UNFINISHED = """
    response IS NULL
    AND created_at <= %(now)s - make_interval(days => %(unfinished)s)
    AND started_at <= %(now)s - make_interval(secs => %(in_progress)s)
    AND (order_reference IS NULL
         OR bought_at <= %(now)s - make_interval(days => %(unfinished)s))
"""
# Returns how many records it deleted, and the time of the last one.
#
# ARRAY(…) is evaluated once, so a batch has at most BATCH records in every plan. SKIP LOCKED skips
# records that a purchase is stamping or a retry is taking over.
DELETE_BATCH = """
    WITH deleted AS (
        DELETE FROM idempotency_idempotencyrecord WHERE id = ANY (ARRAY(
            SELECT id FROM idempotency_idempotencyrecord
             WHERE created_at BETWEEN %(first)s AND %(last)s AND ({})
             ORDER BY created_at
             LIMIT %(batch)s
               FOR UPDATE SKIP LOCKED))
        RETURNING created_at)
    SELECT count(*), max(created_at), set_config('synchronous_commit', 'off', true)
      FROM deleted
"""

_looked_at = BEGINNING  # unfinished records created earlier, in this process


def cleanup_records(*, seconds: float = float("inf")) -> int:
    """Deletes expired records in small batches; returns how many.

    Stored successes expire IDEMPOTENCY_KEEP_COMPLETED_DAYS after their purchase. Unfinished records
    expire IDEMPOTENCY_KEEP_UNFINISHED_DAYS after their creation, or after their purchase if they
    have an order, unless an attempt on them may still be running.

    Each batch is a transaction of its own, and none waits for a purchase. After `seconds` no new
    batch starts; the next run continues.
    """
    deleted, _ = _clean(seconds, unfinished_from=BEGINNING)
    return deleted


def clean_again(*, seconds: float) -> int:
    """`cleanup_records` for a process that calls it time and again.

    From the second call on it reads only what has expired since the last one. An unfinished record
    that could not be deleted then stays as long as a success.
    """
    global _looked_at
    deleted, _looked_at = _clean(seconds, unfinished_from=_looked_at)
    return deleted


def _clean(seconds: float, *, unfinished_from: datetime) -> tuple[int, datetime]:
    """Returns how many records it deleted, and where the next call may begin."""
    end = time.monotonic() + seconds
    now = database_now()
    week = now - timedelta(days=settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS)
    day = now - timedelta(days=settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS)
    total = 0
    for expired, first, last in (
        (f"{SUCCESS} OR {UNFINISHED}", BEGINNING, week),
        (UNFINISHED, unfinished_from, day),
    ):
        deleted, is_done = _delete_range(expired, now, first, last, end)
        total += deleted
        if not is_done:
            return total, unfinished_from
    return total, day - MARGIN


def _delete_range(
    expired: str, now: datetime, first: datetime, last: datetime, end: float
) -> tuple[int, bool]:
    """Returns how many records it deleted, and whether none is left in the range."""
    total = 0
    while time.monotonic() < end:
        with pause_afterwards():
            deleted, newest = _delete_batch(expired, now, first, last)
        if newest is None:
            return total, True
        total, first = total + deleted, newest
    return total, False


def _delete_batch(
    expired: str, now: datetime, first: datetime, last: datetime
) -> tuple[int, datetime | None]:
    with connection.cursor() as cursor:
        cursor.execute(
            DELETE_BATCH.format(expired),
            {
                "first": first,
                "last": last,
                "now": now,
                "completed": settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS,
                "unfinished": settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS,
                "in_progress": settings.IDEMPOTENCY_IN_PROGRESS_SECONDS,
                "batch": BATCH,
            },
        )
        deleted, newest, _ = cursor.fetchone()
    return deleted, newest
