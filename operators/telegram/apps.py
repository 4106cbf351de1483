"""Queues the task that shows an order in Telegram.

This module is an app of its own, without models: API processes load it without the back office.
"""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from django.apps import AppConfig
from django.conf import settings

from core.queue import enqueue
from topups.signals import fulfilment_moved, fulfilment_opened, fulfilment_refunded

# One thread per process, started with its first order.
_queueing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="telegram")


class TelegramConfig(AppConfig):
    name = "operators.telegram.apps"  # the models beside it belong to the app `operators`
    label = "telegram"

    def ready(self) -> None:
        fulfilment_opened.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_moved.connect(queue_order, dispatch_uid="operators.queue_order")
        fulfilment_refunded.connect(queue_order, dispatch_uid="operators.queue_order")


def queue_order(*, fulfilment_id: int, **signal: object) -> None:
    """Receives the signals of new and moved orders, and queues the task from another thread.

    A purchase or a move therefore never waits for the broker, not even for its half second.
    """
    if settings.TELEGRAM_BOT_TOKEN:
        # The copied context has the id of the request, which the log lines of the task will have.
        _queueing.submit(copy_context().run, enqueue, "operators.tasks.show_order", fulfilment_id)
