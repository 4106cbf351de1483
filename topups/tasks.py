"""The Celery tasks of this app. Each is safe to run twice."""

from celery import shared_task
from django.db import InterfaceError, OperationalError

from topups.fulfilment import fulfilments, refunds


@shared_task(
    autoretry_for=(InterfaceError, OperationalError),  # the database is unavailable or busy
    max_retries=8,
    retry_backoff=True,
    retry_backoff_max=20,  # less than the broker's visibility_timeout
    retry_jitter=True,
)
def refund_fulfilment(fulfilment_id: int) -> bool:
    """Carries out the refund of a fulfilment if it is still due."""
    return refunds.carry_out_refund(fulfilment_id)


@shared_task
def sweep_refunds() -> int:
    """Carries out due refunds whose tasks were lost."""
    return refunds.sweep_refunds()


@shared_task
def release_claims_of_leavers() -> int:
    """Returns to the queue the orders of operators who were switched off."""
    return fulfilments.release_claims_of_leavers()


@shared_task
def escalate_stale_claims() -> int:
    """Sends claimed orders to review that nobody finishes."""
    return fulfilments.escalate_stale_claims()
