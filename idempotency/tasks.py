"""The scheduled task of this app."""

from celery import shared_task

from idempotency.cleanup import clean_again

SECONDS = 15  # well below CELERY_TASK_SOFT_TIME_LIMIT


@shared_task
def cleanup_idempotency() -> int:
    """Deletes expired idempotency records. Safe to run twice, also at the same time."""
    return clean_again(seconds=SECONDS)
