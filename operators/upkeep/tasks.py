"""Celery tasks of the upkeep. Each may safely run twice."""

from celery import shared_task

from operators.upkeep import nightly_reconcile, retention
from operators.upkeep.monitoring import heartbeats

__all__ = ["heartbeats"]  # loaded with the tasks: it connects to Celery's signals


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
