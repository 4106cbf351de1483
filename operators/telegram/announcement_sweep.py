"""Brings Telegram up to date: for one order after it changed, and for all orders in the sweep."""

import time

from django.conf import settings

from operators.telegram import chats
from operators.telegram.announce import announce_due, repeat_due, return_lost
from operators.telegram.announcement_rows import log_failure
from operators.telegram.platform_settings import read_platform
from operators.telegram.refresh import refresh_message, resume_edits, stale_messages
from topups.models import Fulfilment, FulfilmentStatus

# A run starts nothing after this, and so ends before CELERY_TASK_SOFT_TIME_LIMIT.
SECONDS = 8.0


def show_order(*, fulfilment_id: int) -> None:
    """Makes Telegram show the order as it is now: edits its message, or announces what waits."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return
    platform = read_platform()
    resume_edits(fulfilment_id)
    refresh_message(fulfilment_id=fulfilment_id, platform=platform)
    if Fulfilment.objects.filter(pk=fulfilment_id, status=FulfilmentStatus.PENDING).exists():
        announce_due(platform, end=time.monotonic() + SECONDS)


def sweep_announcements() -> dict[str, int]:
    """Does everything that is due, including what lost tasks left undone; returns the counts."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return {"edited": 0, "announced": 0, "repeated": 0}
    platform, end = read_platform(), time.monotonic() + SECONDS
    return_lost()
    edited = 0
    stale = stale_messages().exclude(chat_id__in=chats.paused_chats())
    for fulfilment_id in list(stale.values_list("fulfilment_id", flat=True)):
        if time.monotonic() >= end:
            break
        with log_failure(fulfilment_id):
            edited += refresh_message(fulfilment_id=fulfilment_id, platform=platform)
    announced = announce_due(platform, end=end)
    return {"edited": edited, "announced": announced, "repeated": repeat_due(platform, end=end)}
