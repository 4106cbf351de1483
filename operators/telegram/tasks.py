"""Celery tasks of the operators' chat. Each may safely run twice.

They import python-telegram-bot when they run, because it takes 45 MB and a second to load. The web
server, which only queues these tasks, never loads it.
"""

from celery import shared_task
from django.db import InterfaceError, OperationalError


@shared_task(
    autoretry_for=(InterfaceError, OperationalError),  # the database is down or busy
    max_retries=8,
    retry_backoff=True,
    retry_backoff_max=20,  # less than the broker's visibility_timeout
    retry_jitter=True,
)
def show_order(fulfilment_id: int) -> None:
    """Announces an order in Telegram, or updates its message to the current state."""
    from operators.telegram.messages import sweep  # noqa: PLC0415

    sweep.show_order(fulfilment_id=fulfilment_id)


@shared_task
def send_test_messages(user_id: int) -> int:
    """Posts a test message in each chat that may receive orders."""
    from operators.telegram.messages import probe  # noqa: PLC0415

    return probe.send_test_messages(user_id=user_id)


@shared_task
def sweep_announcements() -> dict[str, int]:
    """Sends the announcements and edits that were missed, and repeats unclaimed orders."""
    from operators.telegram.messages import sweep  # noqa: PLC0415

    return sweep.sweep_announcements()
