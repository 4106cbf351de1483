"""The Celery tasks of this app. Each may safely run twice."""

from celery import shared_task

from catalogue.stock import expiry, traces


@shared_task
def hold_expired_codes() -> int:
    """Holds the codes that expire next, so that no stock counts them."""
    return expiry.hold_expired_codes()


@shared_task
def trace_codes() -> int:
    """Lets staff find new codes by serial number and PIN."""
    return traces.trace_codes()
