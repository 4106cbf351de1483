"""Connects the chat to the signals of top-ups, and queues the task that shows an order.

API processes load this app, and no other of the back office.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.conf import settings

from core.queue import enqueue
from operators.sign_in.signals import company_account_unlinked
from topups.signals import fulfilment_moved, fulfilment_opened, fulfilment_refunded

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# One thread per process, started with its first order.
_queueing = ThreadPoolExecutor(max_workers=1, thread_name_prefix="telegram")


class TelegramConfig(AppConfig):
    name = "operators.telegram"

    def ready(self) -> None:
        fulfilment_opened.connect(queue_order, dispatch_uid="telegram.queue_order")
        fulfilment_moved.connect(queue_order, dispatch_uid="telegram.queue_order")
        fulfilment_refunded.connect(queue_order, dispatch_uid="telegram.queue_order")
        company_account_unlinked.connect(unlink_telegram, dispatch_uid="telegram.unlink_telegram")


def queue_order(*, fulfilment_id: int, **signal: object) -> None:
    """Receives the signals of new and moved orders, and queues the task from another thread.

    A purchase or a move therefore never waits for the broker, not even for its half second.
    """
    if settings.TELEGRAM_BOT_TOKEN:
        # The copied context has the id of the request, which the log lines of the task will have.
        _queueing.submit(
            copy_context().run, enqueue, "operators.telegram.tasks.show_order", fulfilment_id
        )


def unlink_telegram(*, user: User, **signal: object) -> None:
    """Receives the signal of an unlinked company account, in its transaction."""
    from operators.telegram.staff_links import unlink_user  # noqa: PLC0415  imports models

    unlink_user(user=user, actor=None)
