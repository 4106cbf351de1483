"""Brings Telegram up to date: for one order after it changed, and for all orders in the sweep."""

import time

from django.conf import settings
from django.db.models import QuerySet

from operators.models import Announcement
from operators.telegram import chats
from operators.telegram.announce import announce_due, repeat_due, return_lost
from operators.telegram.announcement_rows import log_failure
from operators.telegram.platform_settings import Platform, read_platform
from operators.telegram.refresh import (
    aged_messages,
    refresh_message,
    resume_edits,
    stale_messages,
)
from topups.models import Fulfilment, FulfilmentStatus

# A run starts nothing after this, and so ends before CELERY_TASK_SOFT_TIME_LIMIT.
SECONDS = 8.0
# Ages edited by one sweep, at most: Telegram limits the edits in a group, and moves come first.
AGES_AT_ONCE = 2


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
    edited = _edit_each(stale_messages(), platform, end=end)
    announced = announce_due(platform, end=end)
    repeated = repeat_due(platform, end=end)
    edited += _edit_each(aged_messages(), platform, end=end, most=AGES_AT_ONCE)
    return {"edited": edited, "announced": announced, "repeated": repeated}


def _edit_each(
    rows: QuerySet[Announcement], platform: Platform, *, end: float, most: int | None = None
) -> int:
    """Edits the messages of at most `most` rows, until `end` (seconds of `time.monotonic`); returns
    how many."""
    edited = 0
    open_chats = rows.exclude(chat_id__in=chats.paused_chats())
    for fulfilment_id in list(open_chats.values_list("fulfilment_id", flat=True)[:most]):
        if time.monotonic() >= end:
            break
        with log_failure(fulfilment_id):
            edited += refresh_message(fulfilment_id=fulfilment_id, platform=platform)
    return edited
