"""Forgets old idempotency records (contract, "Limits": seven days and one day)."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from idempotency.models import IdempotencyRecord

BATCH = 1000


def cleanup_records() -> int:
    """Deletes every record past its time, in small batches; returns how many.

    A stored success goes after IDEMPOTENCY_KEEP_COMPLETED_DAYS, an unfinished record after
    IDEMPOTENCY_KEEP_UNFINISHED_DAYS unless an attempt on it may still be running.
    """
    total = 0
    while deleted := _delete_batch():
        total += deleted
    return total


def _delete_batch() -> int:
    # SKIP LOCKED passes over a record that a purchase is stamping right now.
    due = (
        IdempotencyRecord.objects.filter(_due())
        .order_by("created_at")
        .values("pk")
        .select_for_update(skip_locked=True)[:BATCH]
    )
    # One statement: rows are picked, locked and deleted together. Django wants a transaction for
    # locks all the same.
    with transaction.atomic():
        return IdempotencyRecord.objects.filter(pk__in=due)._raw_delete(using="default")


def _due() -> Q:
    now = timezone.now()
    completed = now - timedelta(days=settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS)
    unfinished = now - timedelta(days=settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS)
    idle = now - timedelta(seconds=settings.IDEMPOTENCY_IN_PROGRESS_SECONDS)
    return Q(response__isnull=False, created_at__lte=completed) | Q(
        response=None, created_at__lte=unfinished, started_at__lte=idle
    )
