"""Celery tasks of this app. Each may safely run twice.

They import python-telegram-bot when they run, because it takes 45 MB and a second to load. The web
server, which only queues these tasks, never loads it.
"""

from celery import shared_task
from django.db import InterfaceError, OperationalError

from operators import heartbeats, nightly_reconcile, retention
from operators.imports import jobs

__all__ = ["heartbeats"]  # loaded with the tasks: it connects to Celery's signals


@shared_task(
    autoretry_for=(InterfaceError, OperationalError),  # the database is down or busy
    max_retries=8,
    retry_backoff=True,
    retry_backoff_max=20,  # less than the broker's visibility_timeout
    retry_jitter=True,
)
def show_order(fulfilment_id: int) -> None:
    """Announces an order in Telegram, or updates its message to the current state."""
    from operators.telegram import sweep  # noqa: PLC0415

    sweep.show_order(fulfilment_id=fulfilment_id)


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


@shared_task
def sweep_announcements() -> dict[str, int]:
    """Sends the announcements and edits that were missed, and repeats unclaimed orders."""
    from operators.telegram import sweep  # noqa: PLC0415

    return sweep.sweep_announcements()


# A run may take longer than the broker's visibility_timeout. Its message is acknowledged before the
# run, so no second worker gets it. If the worker dies, a later call of the task notices.
@shared_task(
    acks_late=False,
    soft_time_limit=int(nightly_reconcile.LIMIT.total_seconds()) - 60,
    time_limit=int(nightly_reconcile.LIMIT.total_seconds()) - 30,
)
def reconcile_nightly() -> None:
    """Runs `reconcile` if last night's run is missing, and reports what it found to staff."""
    nightly_reconcile.run_if_due()
    nightly_reconcile.tell_telegram()


# It may take minutes. Its message is acknowledged before the run: what a run leaves, the next does.
@shared_task(acks_late=False, soft_time_limit=660, time_limit=690)
def delete_old_data() -> None:
    """Deletes what may go after its time, for at most ten minutes."""
    retention.delete_old_data(apply=True, seconds=600)
