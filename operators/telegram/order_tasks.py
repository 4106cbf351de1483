"""Queues the task that shows an order in Telegram. Loads no models: API processes use it too."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from django.conf import settings

from core.queue import enqueue

# One thread per process, started with its first order.
_queueing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="telegram")


def queue_order(*, fulfilment_id: int, **signal: object) -> None:
    """Receives the signals of new and moved orders, and queues the task from another thread.

    A purchase or a move therefore never waits for the broker, not even for its half second.
    """
    if settings.TELEGRAM_BOT_TOKEN:
        # The copied context has the id of the request, which the log lines of the task will have.
        _queueing.submit(copy_context().run, enqueue, "operators.tasks.show_order", fulfilment_id)
