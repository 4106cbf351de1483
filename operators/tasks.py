"""What Celery runs for this app; each is safe to run twice.

python-telegram-bot costs 45 MB and a second to load, so only the processes that talk to Telegram
load it, and not the web server, which only queues these tasks.
"""

from celery import shared_task
from django.db import InterfaceError, OperationalError


@shared_task(
    autoretry_for=(InterfaceError, OperationalError),  # the database is away, or busy
    max_retries=8,
    retry_backoff=True,
    retry_backoff_max=20,  # less than the broker's visibility_timeout
    retry_jitter=True,
)
def show_order(fulfilment_id: int) -> None:
    """Makes Telegram show an order as it is."""
    from operators.telegram import announcement_sweep  # noqa: PLC0415

    announcement_sweep.show_order(fulfilment_id=fulfilment_id)


@shared_task
def sweep_announcements() -> dict[str, int]:
    """Announces and edits what was missed, and announces again what nobody claims."""
    from operators.telegram import announcement_sweep  # noqa: PLC0415

    return announcement_sweep.sweep_announcements()
