"""Helpers for tests of announcing: an operators' chat, orders, and time that passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from operators.telegram.messages.sweep import show_order, sweep_announcements
from operators.telegram.models import Announcement, AnnouncementChat, PlatformSettings
from tests.factories import buy_topup, make_merchant, make_operator, make_topup_product, move_now
from tests.telegram.fake_bot_api.faults import DROP, ERROR, HANG, Fault
from tests.telegram.fake_bot_api.objects import Chat, Message
from tests.telegram.fake_bot_api.server import BotApi, running_bot_api
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

# Part of the message of an order that may have been posted twice.
DOUBT = "may be in the chat twice"
ANSWER_LOST: dict[str, Fault] = {
    "timeout after the post": HANG(3, after=True),
    "connection lost after the post": DROP(after=True),
    "connection lost before the post": DROP(),
    "500": ERROR(500),
    "502": ERROR(502, "Bad Gateway"),
}


@dataclass
class Place:
    """An operators' chat, and the service that announces there."""

    api: BotApi
    group: Chat
    settings: Any

    def order(self, **fields: Any) -> Fulfilment:
        """A new order of a top-up product that is announced."""
        product = fields.pop("product", None) or make_topup_product(announce=True, **fields)
        reference = buy_topup(make_merchant(), product)
        return Fulfilment.objects.get(order_reference=reference)

    def posted(self, chat: Chat | None = None) -> list[Message]:
        return self.api.bot_messages(chat or self.group)

    def set(self, **fields: Any) -> None:
        """Changes the platform settings."""
        PlatformSettings.objects.filter(pk=1).update(**fields)


@contextmanager
def operators_chat(settings: Any) -> Iterator[Place]:
    """Announces to one group on a Bot API server of the test's own."""
    with running_bot_api() as api:
        settings.TELEGRAM_BOT_TOKEN = api.token
        settings.TELEGRAM_API_URL = api.url
        settings.TELEGRAM_TIMEOUT_SECONDS = 5
        group = api.add_group("Operators")
        PlatformSettings.objects.create(announcing=True, chat_id=group.id)
        yield Place(api, group, settings)


def move(fulfilment: Fulfilment, move: Move, operator: Operator | None = None) -> None:
    """Moves the order at the desk."""
    move_now(reference=fulfilment.order_reference, move=move, operator=operator or make_operator())


def row_of(fulfilment: Fulfilment) -> Announcement:
    return Announcement.objects.get(fulfilment=fulfilment)


def sweep() -> dict[str, int]:
    return sweep_announcements()


def show(fulfilment: Fulfilment) -> None:
    show_order(fulfilment_id=fulfilment.pk)


def later(**time: float) -> None:
    """Moves all pauses, leases and times of announcements into the past by this much."""
    passed = timedelta(**time)
    AnnouncementChat.objects.update(
        paused_until=F("paused_until") - passed,
        window_started_at=F("window_started_at") - passed,
    )
    Announcement.objects.update(
        busy_until=F("busy_until") - passed,
        restore_at=F("restore_at") - passed,
        announced_at=F("announced_at") - passed,
        repeated_at=F("repeated_at") - passed,
    )


def pause_of(chat: Chat) -> float:
    """The rest of the chat's pause, in seconds."""
    until = AnnouncementChat.objects.get(chat_id=chat.id).paused_until
    assert until is not None
    return (until - timezone.now()).total_seconds()


def given_up() -> list[str]:
    """The references of the orders that were given up, the first one first."""
    entries = AuditEntry.objects.filter(action=AuditAction.ANNOUNCEMENT_GIVEN_UP)
    return list(entries.order_by("pk").values_list("reference", flat=True))
