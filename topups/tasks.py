"""What Celery runs for this app; each is safe to run twice."""

from celery import shared_task
from django.db import InterfaceError, OperationalError

from topups import refunds


@shared_task(
    autoretry_for=(InterfaceError, OperationalError),  # the database is away, or busy
    max_retries=8,
    retry_backoff=True,
    retry_backoff_max=20,  # less than the broker's visibility_timeout
    retry_jitter=True,
)
def refund_fulfilment(fulfilment_id: int) -> bool:
    """Credits the wallet of a failed fulfilment, if that is still due."""
    return refunds.carry_out_refund(fulfilment_id)


@shared_task
def sweep_refunds() -> int:
    """Carries out the refunds whose task was lost."""
    return refunds.sweep_refunds()
