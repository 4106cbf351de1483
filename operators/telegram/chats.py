"""Telegram's limits for each chat, shared by all processes in rows of AnnouncementChat."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Greatest
from django.utils import timezone

from audit.models import AuditAction
from audit.services import record_action
from operators.models import AnnouncementChat, AnnouncementRoute, PlatformSettings

WINDOW = timedelta(minutes=1)
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(minutes=5)


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
    """The ids of the chats for which is_paused is true."""
    chats = AnnouncementChat.objects.exclude(_free(timezone.now()))
    return list(chats.values_list("chat_id", flat=True))


def pause(chat_id: int, *, error: str, wait: timedelta | None = None) -> None:
    """Stops calls about the chat for `wait`, or else for a time that doubles with each failure."""
    chat, _ = AnnouncementChat.objects.get_or_create(chat_id=chat_id)
    backoff = min(FIRST_PAUSE * 2 ** min(chat.failures, 10), LONGEST_PAUSE)
    until = timezone.now() + (wait or backoff)
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


def _free(now: datetime) -> Q:
    return Q(paused_until=None) | Q(paused_until__lte=now)
