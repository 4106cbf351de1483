"""Celery tasks of the upkeep. Each may safely run twice."""

from celery import shared_task

from operators.upkeep import nightly_reconcile, retention
from operators.upkeep.monitoring import heartbeats

__all__ = ["heartbeats"]  # loaded with the tasks: it connects to Celery's signals
LIMIT = int(nightly_reconcile.LIMIT.total_seconds())


# A run may take longer than the broker's visibility_timeout. Its message is acknowledged before the
# run, so no second worker gets it. If the worker dies, a later call of the task notices.
@shared_task(acks_late=False, soft_time_limit=LIMIT - 60, time_limit=LIMIT - 30)
def reconcile_nightly() -> None:
    """Runs `reconcile` if last night's run is missing, and reports what it found to staff. First it
    makes a run that a person asked for, if the message of that was lost."""
    nightly_reconcile.run_if_asked()
    nightly_reconcile.run_if_due()
    nightly_reconcile.tell_telegram()


@shared_task(acks_late=False, soft_time_limit=LIMIT - 60, time_limit=LIMIT - 30)
def reconcile_now() -> None:
    """Makes the run that a person asked for, and reports what it found to staff."""
    nightly_reconcile.run_if_asked()
    nightly_reconcile.tell_telegram()


# It may take minutes. Its message is acknowledged before the run: what a run leaves, the next does.
@shared_task(acks_late=False, soft_time_limit=660, time_limit=690)
def delete_old_data() -> None:
    """Deletes what may go after its time, for at most ten minutes."""
    retention.delete_old_data(apply=True, seconds=600)
