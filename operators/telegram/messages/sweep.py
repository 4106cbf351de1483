"""Brings Telegram up to date: for one order after it changed, and for all orders in the sweep."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from operators.telegram import bot_api, chats
from operators.telegram.chats import Platform, Target, read_platform
from operators.telegram.messages.editing import (
    aged_messages,
    refresh_message,
    resume_edits,
    stale_messages,
)
from operators.telegram.messages.posting import Due, Outcome, may_be_posted, post, return_lost
from operators.telegram.models import Announcement, AnnouncementState
from topups.fulfilment.transitions import OPEN
from topups.fulfilment.versions import latest_event
from topups.models import Fulfilment, FulfilmentStatus

logger = structlog.get_logger(__name__)

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
        _post_each(_not_announced(platform), platform, end=time.monotonic() + SECONDS)


def sweep_announcements() -> dict[str, int]:
    """Does everything that is due, including what lost tasks left undone; returns the counts."""
    if not settings.TELEGRAM_BOT_TOKEN:
        return {"edited": 0, "announced": 0, "repeated": 0}
    platform, end = read_platform(), time.monotonic() + SECONDS
    return_lost()
    edited = _edit_each(stale_messages(), platform, end=end)
    announced = _post_each(_not_announced(platform), platform, end=end)
    repeated = _post_each(_not_claimed(platform), platform, end=end)
    edited += _edit_each(aged_messages(), platform, end=end, most=AGES_AT_ONCE)
    return {"edited": edited, "announced": announced, "repeated": repeated}


def _not_announced(platform: Platform) -> Iterator[Due]:
    """Orders that were never announced, and open orders whose message is gone."""
    never_posted = Q(announcement=None) | Q(announcement__state=AnnouncementState.WAITING)
    lost_its_message = Q(
        announcement__state=AnnouncementState.WAITING, announcement__announced_at__isnull=False
    )
    waiting = (
        Fulfilment.objects.filter(
            Q(never_posted, status=FulfilmentStatus.PENDING, product__announce=True)
            | Q(lost_its_message, status__in=OPEN)
        )
        .order_by("created_at", "pk")
        .values_list("pk", "product_id", "product__category_id")
    )
    for pk, product_id, category_id in waiting:
        target = platform.target_of(product_id=product_id, category_id=category_id)
        if target is not None:
            yield Due(pk, target, Q(state=AnnouncementState.WAITING))


def _not_claimed(platform: Platform) -> Iterator[Due]:
    """Orders to announce again: staff requested it, or they stayed unclaimed for too long."""
    times, minutes = platform.settings.repeat_times, platform.settings.repeat_minutes
    is_due = Q(repeat_requested=True)
    if minutes is not None:
        long_ago = timezone.now() - timedelta(minutes=minutes)
        is_due |= Q(repeats__lt=times, unclaimed_since__lte=long_ago)
    rows = (
        Announcement.objects.filter(
            may_be_posted(),
            state=AnnouncementState.ANNOUNCED,
            fulfilment__status=FulfilmentStatus.PENDING,
        )
        .annotate(
            unclaimed_since=Greatest(
                Coalesce("repeated_at", "announced_at"), latest_event("fulfilment", "created_at")
            )
        )
        .filter(is_due)
        .order_by("fulfilment__created_at", "pk")
    )
    for row in rows:
        assert row.chat_id is not None  # noqa: S101  a constraint
        target = Target(row.chat_id, row.topic_id)
        still = Q(state=AnnouncementState.ANNOUNCED, attempts=row.attempts)
        yield Due(row.fulfilment_id, target, still)


def _post_each(orders: Iterator[Due], platform: Platform, *, end: float) -> int:
    """Posts the orders, the oldest first, until `end` (seconds of `time.monotonic`), if orders may
    be announced now; returns how many. A failure of one order does not stop the others."""
    if not platform.announces(timezone.now()):
        return 0
    closed = set(chats.paused_chats())
    sent = 0
    for due in orders:
        if time.monotonic() >= end:
            break
        if due.target.chat_id in closed:
            continue
        with _log_failure(due.fulfilment_id):
            outcome = post(due, platform)
            sent += outcome == Outcome.SENT
            if outcome == Outcome.CHAT_CLOSED:
                closed.add(due.target.chat_id)
    return sent


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
        with _log_failure(fulfilment_id):
            edited += refresh_message(fulfilment_id=fulfilment_id, platform=platform)
    return edited


@contextmanager
def _log_failure(fulfilment_id: int) -> Iterator[None]:
    """Logs a failure of one order, so that the others go on; the next sweep tries it again.

    Lets SoftTimeLimitExceeded through, and any error while the database is away.
    """
    try:
        yield
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if not connection.is_usable():  # the database is away; the order is not the cause
            raise
        logger.error("announcement_failed", fulfilment=fulfilment_id, cause=bot_api.describe(error))
