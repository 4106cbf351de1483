"""Celery tasks of the imports. Each may safely run twice."""

from celery import shared_task
from django.db import InterfaceError, OperationalError

from operators.imports import jobs


# The message is confirmed before the task begins: a million codes take longer than the broker
# waits. The sweep continues what a dead worker left.
@shared_task(
    acks_late=False,
    soft_time_limit=1800,
    time_limit=1830,
    autoretry_for=(InterfaceError, OperationalError),  # the database is down or busy
    max_retries=3,
    retry_backoff=True,
)
def run_import(file_import_id: int) -> None:
    """Checks or imports an uploaded file."""
    jobs.run_import(pk=file_import_id)


@shared_task
def sweep_imports() -> dict[str, int]:
    """Continues imports that a worker did not finish, and discards old files."""
    return jobs.sweep_imports()
