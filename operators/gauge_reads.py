"""The gauges of the back office that take more than a query to read."""

from math import inf

from django.conf import settings
from django.db.models import Max, Q
from django.utils import timezone

from operators.models import Heartbeat, HeartbeatKind
from operators.telegram.bot_cache import seconds_since_beat
from operators.telegram.chats import read_platform
from operators.telegram.models import AnnouncementState
from topups.models import Fulfilment, FulfilmentStatus

MOST_WAITING = 1000  # orders; more than these are not counted


def read_heartbeats() -> list[tuple[str, float]]:
    """The age of the newest heartbeat of each kind of process, in seconds; infinite if none."""
    now = timezone.now()
    newest = dict(Heartbeat.objects.values_list("kind").annotate(Max("beat_at")))
    ages = [
        (kind.value, (now - newest[kind]).total_seconds() if kind in newest else inf)
        for kind in HeartbeatKind
    ]
    if settings.TELEGRAM_BOT_TOKEN:
        ages.append(("bot", _age_of_bot()))
    return ages


def read_waiting_announcements() -> list[tuple[int, float]]:
    """How many orders should have been announced by now, and the age of the oldest in seconds."""
    now, platform = timezone.now(), read_platform()
    if not settings.TELEGRAM_BOT_TOKEN or not platform.announces(now):
        return [(0, 0)]
    not_posted = Q(announcement=None) | Q(
        announcement__state__in=[AnnouncementState.WAITING, AnnouncementState.SENDING]
    )
    orders = (
        Fulfilment.objects.filter(
            not_posted, status=FulfilmentStatus.PENDING, product__announce=True
        )
        .order_by("created_at")
        .values_list("created_at", "product_id", "product__category_id")[:MOST_WAITING]
    )
    waiting = [
        created_at
        for created_at, product, category in orders
        if platform.target_of(product_id=product, category_id=category)
    ]
    return [(len(waiting), (now - waiting[0]).total_seconds() if waiting else 0)]


def _age_of_bot() -> float:
    try:
        seconds_ago = seconds_since_beat()
    except Exception:  # the cache is lost; its own gauge says so
        seconds_ago = None
    return inf if seconds_ago is None else seconds_ago
