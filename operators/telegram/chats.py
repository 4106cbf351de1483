"""The chats of orders: the settings and routes that choose one, and Telegram's limits in each.

The limits are in rows of AnnouncementChat, which all processes share.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Greatest
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.telegram.models import (
    ONLY_ROW,
    AnnouncementChat,
    AnnouncementRoute,
    PlatformSettings,
)

WINDOW = timedelta(minutes=1)
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)


@dataclass(frozen=True)
class Target:
    """A chat, or one topic in it."""

    chat_id: int
    topic_id: int | None = None


@dataclass(frozen=True)
class Platform:
    """The settings and routes as they were when they were read."""

    settings: PlatformSettings
    products: dict[int, Target]
    categories: dict[int, Target]

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.settings.time_zone)

    def target_of(self, *, product_id: int, category_id: int | None) -> Target | None:
        """The chat for orders of this top-up product; None if they are not announced."""
        if product_id in self.products:
            return self.products[product_id]
        if category_id is not None and category_id in self.categories:
            return self.categories[category_id]
        if self.settings.chat_id is None:
            return None
        return Target(self.settings.chat_id, self.settings.topic_id)

    def targets(self) -> list[Target]:
        """Every chat and topic that may receive orders, each once."""
        chosen = [*self.products.values(), *self.categories.values()]
        if self.settings.chat_id is not None:
            chosen.insert(0, Target(self.settings.chat_id, self.settings.topic_id))
        return list(dict.fromkeys(chosen))

    def announces(self, now: datetime) -> bool:
        """Whether orders may be announced now."""
        return self.settings.announcing and not is_quiet(self.settings, now)


def read_platform() -> Platform:
    """Reads the settings and routes, with two queries."""
    routes = list(AnnouncementRoute.objects.all())
    return Platform(
        settings=platform_settings(),
        products={r.product_id: _target(r) for r in routes if r.product_id is not None},
        categories={r.category_id: _target(r) for r in routes if r.category_id is not None},
    )


def platform_settings() -> PlatformSettings:
    """The one row, or the defaults (announcing off) if none was saved yet."""
    return PlatformSettings.objects.filter(pk=ONLY_ROW).first() or PlatformSettings()


def is_quiet(platform: PlatformSettings, now: datetime) -> bool:
    """Whether `now` is in the quiet hours, which may span midnight."""
    begin, end = platform.quiet_from, platform.quiet_until
    if begin is None or end is None:
        return False
    clock = now.astimezone(ZoneInfo(platform.time_zone)).time().replace(tzinfo=None)
    return begin <= clock < end if begin < end else clock >= begin or clock < end


def take_slot(chat_id: int) -> bool:
    """Counts one more message if it may be posted in this chat now; returns whether it may."""
    now = timezone.now()
    AnnouncementChat.objects.get_or_create(chat_id=chat_id)
    is_past = Q(window_started_at=None) | Q(window_started_at__lte=now - WINDOW)
    return bool(
        AnnouncementChat.objects.filter(_free(now), chat_id=chat_id)
        .filter(is_past | Q(sent__lt=settings.TELEGRAM_MESSAGES_PER_MINUTE))
        .update(
            sent=Case(When(is_past, then=Value(1)), default=F("sent") + 1),
            window_started_at=Case(When(is_past, then=Value(now)), default=F("window_started_at")),
        )
    )


def is_paused(chat_id: int) -> bool:
    """Whether no calls may be made about this chat for now."""
    chat = AnnouncementChat.objects.filter(chat_id=chat_id)
    return chat.exclude(_free(timezone.now())).exists()


def paused_chats() -> list[int]:
    """The ids of the chats about which no calls may be made for now."""
    chats = AnnouncementChat.objects.exclude(_free(timezone.now()))
    return list(chats.values_list("chat_id", flat=True))


def pause(chat_id: int, *, error: str, wait: timedelta | None = None) -> None:
    """Stops calls about the chat for `wait`, or else for a time that doubles with each failure."""
    chat, _ = AnnouncementChat.objects.get_or_create(chat_id=chat_id)
    backoff = min(FIRST_PAUSE * 2 ** min(chat.failures, 10), LONGEST_PAUSE)
    until = timezone.now() + (backoff if wait is None else wait)
    AnnouncementChat.objects.filter(chat_id=chat_id).update(
        paused_until=Greatest("paused_until", Value(until)),  # null counts as less
        failures=F("failures") + 1,
        last_error=error[:200],
    )


def note_success(chat_id: int) -> None:
    """Resets the failures of a chat: Telegram answers again."""
    troubled = AnnouncementChat.objects.filter(chat_id=chat_id, failures__gt=0)
    troubled.update(failures=0, last_error="")


def follow_chat(before: int, after: int) -> None:
    """Points the settings and routes at the supergroup that replaced a group."""
    moved = PlatformSettings.objects.filter(chat_id=before).update(chat_id=after)
    moved += AnnouncementRoute.objects.filter(chat_id=before).update(chat_id=after)
    if moved:
        record_action(
            actor=None,
            action=AuditAction.CHAT_MOVED,
            on=PlatformSettings(),
            reference=str(before),
            note=f"The group is now {after}. Settings and routes were updated.",
        )


def _target(route: AnnouncementRoute) -> Target:
    return Target(route.chat_id, route.topic_id)


def _free(now: datetime) -> Q:
    return Q(paused_until=None) | Q(paused_until__lte=now)
