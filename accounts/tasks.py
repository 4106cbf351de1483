"""The scheduled task of this app."""

from celery import shared_task

from accounts.api_access import request_records

SECONDS = 15  # well below CELERY_TASK_SOFT_TIME_LIMIT


@shared_task
def delete_request_records() -> int:
    """Deletes old request records. Safe to run twice, also at the same time."""
    return request_records.delete_old_records(seconds=SECONDS)
