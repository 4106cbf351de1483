"""The Celery tasks of this app. Each may safely run twice."""

from celery import shared_task

from catalogue.stock import expiry, repeats, traces


@shared_task
def hold_expired_codes() -> int:
    """Holds the codes that expire next, so that no stock counts them."""
    return expiry.hold_expired_codes()


@shared_task
def trace_codes() -> int:
    """Lets staff find new codes by serial number and PIN."""
    return traces.trace_codes()


@shared_task
def hold_repeats() -> int:
    """Holds codes that repeat another one but for marks of a spreadsheet."""
    return repeats.hold_repeats()
