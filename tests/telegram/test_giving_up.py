"""Announcements that Telegram refuses are given up visibly, and can be announced again."""

from collections.abc import Callable

import pytest

from audit.models import AuditAction, AuditEntry
from operators.telegram.announcements import request_refresh
from operators.telegram.models import Announcement, AnnouncementState
from operators.upkeep.reconcile import reconcile
from tests.factories import make_operator
from tests.operators.back_office import list_url, make_staff, signed_in, url
from tests.telegram.announcing import (
    DOUBT,
    Place,
    given_up,
    later,
    move,
    row_of,
    show,
    sweep,
)
from tests.telegram.fake_bot_api.faults import ERROR
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db


def _kick(place: Place) -> None:
    place.group.kicked = True


def _lose_chat(place: Place) -> None:
    place.set(chat_id=-42)


def _lose_topic(place: Place) -> None:
    forum = place.api.add_group("Forum", forum=True)
    place.set(chat_id=forum.id, topic_id=99)


@pytest.mark.parametrize(
    ("break_it", "error"),
    [
        (_kick, "bot was kicked"),
        (_lose_chat, "chat not found"),
        (_lose_topic, "thread not found"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_order_that_cannot_be_announced_is_given_up_with_a_mark(
    place: Place, break_it: Callable[[Place], None], error: str
) -> None:
    break_it(place)
    order = place.order()

    show(order)
    show(order)
    sweep()

    assert place.api.count("sendMessage") == 1
    row = row_of(order)
    assert row.state == AnnouncementState.GIVEN_UP
    assert error in row.last_error.lower()
    assert given_up() == [order.order_reference]
    desk = signed_in().get(list_url(Fulfilment)).content.decode()
    assert "not in Telegram" in desk
    assert error in signed_in().get(url(order)).content.decode().lower()
    result = reconcile()
    assert result["ok"] is True
    assert order.order_reference in result["warnings"][0]["finding"]


def test_given_up_order_can_be_announced_again(place: Place) -> None:
    place.group.kicked = True
    order, taken = place.order(), place.order()
    sweep()
    sweep()
    place.group.kicked = False
    move(taken, Move.COMPLETE)
    sweep()
    assert place.posted() == []
    may_only_look = make_staff("telegram.view_announcement")
    may = make_staff("telegram.view_announcement", "telegram.announce_again")
    asked = {
        "action": "announce_again_selected",
        "_selected_action": [row_of(order).pk, row_of(taken).pk],
    }
    page = list_url(Announcement)

    signed_in(may_only_look).post(page, asked)
    sweep()
    assert place.posted() == []
    answer = signed_in(may).post(page, asked, follow=True)
    sweep()

    assert "announced again: 1" in answer.content.decode()
    (message,) = place.posted()
    assert order.order_reference in message.text
    entry = AuditEntry.objects.get(action=AuditAction.ANNOUNCEMENT_RESUMED)
    assert (entry.actor, entry.reference) == (may, order.order_reference)


def test_announced_order_can_be_announced_again(place: Place) -> None:
    order = place.order()
    show(order)
    asked = {"action": "announce_again_selected", "_selected_action": [row_of(order).pk]}

    signed_in().post(list_url(Announcement), asked)
    sweep()
    sweep()

    first, second = place.posted()
    assert (first.buttons, second.buttons) == ([], ["Claim"])


def test_refused_edit_is_given_up(place: Place) -> None:
    order = place.order()
    show(order)
    place.group.kicked = True
    move(order, Move.CLAIM)

    sweep()
    sweep()

    assert place.api.count("editMessageText") == 1
    assert given_up() == [order.order_reference]


def test_refused_token_gives_nothing_up(place: Place) -> None:
    order = place.order()
    place.settings.TELEGRAM_BOT_TOKEN = "4711:another-token-altogether"
    show(order)
    place.settings.TELEGRAM_BOT_TOKEN = place.api.token
    later(minutes=10)

    sweep()

    assert given_up() == []
    (message,) = place.posted()
    assert DOUBT not in message.text


def test_given_up_message_is_edited_at_the_orders_next_move(place: Place) -> None:
    order, anna = place.order(), make_operator()
    show(order)
    place.group.kicked = True
    move(order, Move.CLAIM, anna)
    show(order)
    assert row_of(order).state == AnnouncementState.GIVEN_UP
    place.group.kicked = False

    move(order, Move.COMPLETE, anna)
    show(order)

    (message,) = place.posted()
    assert "Delivered" in message.text
    assert message.buttons == []
    assert row_of(order).state == AnnouncementState.ENDED


def test_press_on_a_given_up_message_updates_it(place: Place) -> None:
    order = place.order()
    show(order)
    place.group.kicked = True
    move(order, Move.COMPLETE)
    show(order)
    place.group.kicked = False

    request_refresh(fulfilment_id=order.pk)
    sweep()

    assert "Delivered" in place.posted()[0].text


def test_refused_repetition_leaves_the_known_message_up_to_date(place: Place) -> None:
    """A closed topic takes no new messages, but allows edits of existing ones."""
    order = place.order()
    show(order)
    place.api.fault("sendMessage", ERROR(400, "Bad Request: TOPIC_CLOSED"))
    Announcement.objects.update(repeat_requested=True)
    sweep()
    assert row_of(order).state == AnnouncementState.GIVEN_UP

    move(order, Move.COMPLETE)
    show(order)

    assert "Delivered" in place.posted()[0].text
