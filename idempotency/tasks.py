"""What Celery beat runs for this app."""

from celery import shared_task

from idempotency.cleanup import cleanup_records

SECONDS = 15  # well below CELERY_TASK_SOFT_TIME_LIMIT


@shared_task
def cleanup_idempotency() -> int:
    """Forgets old idempotency records; safe to run twice, or twice at once."""
    return cleanup_records(seconds=SECONDS)
