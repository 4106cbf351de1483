"""Celery tasks of the imports. Each may safely run twice."""

from celery import shared_task
from django.db import InterfaceError, OperationalError

from operators.imports import jobs


@shared_task(
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
