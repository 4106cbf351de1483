"""Forgets old idempotency records (contract, "Limits": seven days and one day)."""

import time

from django.conf import settings
from django.db import connection

BATCH = 1000

# ARRAY(…) is worked out once, so a batch is a batch whatever plan the planner likes. SKIP LOCKED
# passes over a record that a purchase is stamping, or a retry taking over, right now.
DELETE_BATCH = """
    DELETE FROM idempotency_idempotencyrecord WHERE id = ANY (ARRAY(
        SELECT id FROM idempotency_idempotencyrecord
         WHERE response IS NOT NULL
           AND created_at <= statement_timestamp() - make_interval(days => %(completed)s)
            OR response IS NULL
           AND created_at <= statement_timestamp() - make_interval(days => %(unfinished)s)
           AND started_at <= statement_timestamp() - make_interval(secs => %(in_progress)s)
           -- A retry may have bought under an old record minutes ago: that purchase is remembered
           -- for a day of its own, or the next retry would buy again.
           AND (order_reference IS NULL
                OR started_at <= statement_timestamp() - make_interval(days => %(unfinished)s))
         ORDER BY created_at
         LIMIT %(batch)s
           FOR UPDATE SKIP LOCKED
    ))
"""


def cleanup_records(*, seconds: float = float("inf")) -> int:
    """Deletes every record past its time, in small batches; returns how many.

    After so many `seconds` it begins no other batch, and leaves the rest to the next run.

    A stored success goes after IDEMPOTENCY_KEEP_COMPLETED_DAYS, an unfinished record after
    IDEMPOTENCY_KEEP_UNFINISHED_DAYS unless an attempt on it may still be running. Each batch
    commits by itself, and none waits for a purchase.
    """
    total = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and (deleted := _delete_batch()):
        total += deleted
    return total


def _delete_batch() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            DELETE_BATCH,
            {
                "completed": settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS,
                "unfinished": settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS,
                "in_progress": settings.IDEMPOTENCY_IN_PROGRESS_SECONDS,
                "batch": BATCH,
            },
        )
        deleted: int = cursor.rowcount
    return deleted
