"""Deleting old idempotency records (contract, "Limits": after seven days and one day)."""

import time

from django.conf import settings
from django.db import connection

BATCH = 1000  # records per transaction

# The times of a record with an order count from its purchase (`bought_at`). After a takeover the
# purchase may be days younger than the record, and the next retry must not buy again. bought_at has
# no index, so the stamp changes none (HOT); the conditions on created_at are the indexed ones.
#
# ARRAY(…) is evaluated once, so a batch has at most BATCH records in every plan. SKIP LOCKED skips
# records that a purchase is stamping or a retry is taking over.
DELETE_BATCH = """
    DELETE FROM idempotency_idempotencyrecord WHERE id = ANY (ARRAY(
        SELECT id FROM idempotency_idempotencyrecord
         WHERE response IS NOT NULL
           AND created_at <= statement_timestamp() - make_interval(days => %(completed)s)
           AND bought_at <= statement_timestamp() - make_interval(days => %(completed)s)
            OR response IS NULL
           AND created_at <= statement_timestamp() - make_interval(days => %(unfinished)s)
           AND started_at <= statement_timestamp() - make_interval(secs => %(in_progress)s)
           AND (order_reference IS NULL
                OR bought_at <= statement_timestamp() - make_interval(days => %(unfinished)s))
         ORDER BY created_at
         LIMIT %(batch)s
           FOR UPDATE SKIP LOCKED
    ))
"""


def cleanup_records(*, seconds: float = float("inf")) -> int:
    """Deletes expired records in small batches; returns how many.

    Stored successes expire IDEMPOTENCY_KEEP_COMPLETED_DAYS after their purchase. Unfinished records
    expire IDEMPOTENCY_KEEP_UNFINISHED_DAYS after their creation, or after their purchase if they
    have an order, unless an attempt on them may still be running.

    Each batch is a transaction of its own, and none waits for a purchase. After `seconds` no new
    batch starts; the next run continues.
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
