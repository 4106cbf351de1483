"""Telegram's answer is lost, or the call never arrives: each order is announced, and a possible
second message says so."""

import socket
from typing import Any

import pytest

from embedded.processes import free_port
from operators.telegram import bot_api
from operators.telegram.announcements import note_stray
from operators.telegram.chats import Target
from operators.telegram.messages import posting
from operators.telegram.messages.message import Message
from operators.telegram.messages.message import render as real_render
from operators.telegram.models import Announcement, AnnouncementChat, AnnouncementState
from tests.telegram.announcing import (
    ANSWER_LOST,
    DOUBT,
    Place,
    given_up,
    later,
    move,
    pause_of,
    row_of,
    show,
    sweep,
)
from tests.telegram.fake_bot_api.faults import DROP, SLOW
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]


@pytest.mark.parametrize("fault", ANSWER_LOST)
def test_lost_answer_leads_to_a_second_message_that_says_so(place: Place, fault: str) -> None:
    place.api.fault("sendMessage", ANSWER_LOST[fault])
    order = place.order()
    show(order)
    sweep()
    before = place.posted()
    assert len(before) == (1 if ANSWER_LOST[fault].after else 0)  # the second is not posted at once

    later(minutes=10)
    sweep()
    sweep()

    message = place.posted()[-1]
    assert len(place.posted()) == len(before) + 1
    assert DOUBT in message.text
    assert row_of(order).message_id == message.id


def test_first_press_on_the_unknown_message_retires_it(place: Place) -> None:
    place.api.fault("sendMessage", DROP(after=True))
    order = place.order()
    show(order)
    later(minutes=10)
    sweep()
    unknown, known = place.posted()

    note_stray(fulfilment_id=order.pk, chat_id=place.group.id, message_id=unknown.id)
    show(order)

    assert (unknown.buttons, known.buttons) == ([], ["Claim"])
    assert "another message" in unknown.text
    note_stray(fulfilment_id=order.pk, chat_id=place.group.id, message_id=known.id)
    assert sweep()["edited"] == 0


def test_press_on_the_only_message_makes_it_the_orders_message(place: Place) -> None:
    place.api.fault("sendMessage", DROP(after=True))
    order = place.order()
    show(order)
    (unknown,) = place.posted()

    note_stray(fulfilment_id=order.pk, chat_id=place.group.id, message_id=unknown.id)
    later(minutes=10)
    move(order, Move.CLAIM)
    sweep()

    assert place.posted() == [unknown]
    assert "Claimed" in unknown.text


def test_press_in_another_chat_replaces_nothing(place: Place) -> None:
    order = place.order()
    show(order)
    before = row_of(order)

    note_stray(fulfilment_id=order.pk, chat_id=4711, message_id=1)

    assert row_of(order) == before
    assert row_of(order).former_message_id is None


def test_order_is_given_up_after_three_lost_answers(place: Place) -> None:
    place.api.fault("sendMessage", DROP(after=True), times=10)
    order = place.order()
    for _ in range(6):
        sweep()
        later(minutes=10)

    assert len(place.posted()) == 3
    assert row_of(order).state == AnnouncementState.GIVEN_UP
    assert given_up() == [order.order_reference]


def test_worker_killed_while_sending_counts_as_a_lost_answer(place: Place) -> None:
    order = place.order()
    dying = pytest.MonkeyPatch()
    dying.setattr(bot_api, "send", _die)
    with dying.context(), pytest.raises(_Killed):
        show(order)
    dying.undo()
    assert row_of(order).state == AnnouncementState.SENDING
    assert sweep()["announced"] == 0

    later(minutes=2)
    sweep()

    (message,) = place.posted()
    assert DOUBT in message.text


def test_lost_repetition_leaves_the_known_message_up_to_date(place: Place) -> None:
    order = place.order()
    show(order)
    Announcement.objects.update(repeat_requested=True)
    place.api.fault("sendMessage", DROP(after=True))
    sweep()
    move(order, Move.COMPLETE)
    later(minutes=10)

    sweep()

    known, unknown = place.posted()
    assert "Delivered" in known.text
    note_stray(fulfilment_id=order.pk, chat_id=place.group.id, message_id=unknown.id)
    sweep()
    assert unknown.buttons == []


class _Killed(BaseException):
    """Ends the call as if the process had been killed."""


def _die(**arguments: object) -> int:
    raise _Killed


def test_refused_connection_is_not_a_lost_answer(place: Place) -> None:
    place.settings.TELEGRAM_API_URL = f"http://127.0.0.1:{free_port()}"
    order = place.order()
    pauses = []
    for _ in range(3):
        show(order)
        pauses.append(pause_of(place.group))
        later(minutes=10)
    place.settings.TELEGRAM_API_URL = place.api.url

    sweep()

    assert pauses == sorted(pauses)
    assert pauses[2] > 2 * pauses[0]
    (message,) = place.posted()
    assert DOUBT not in message.text
    row = row_of(order)
    assert (row.lost_answers, row.last_error) == (0, "")
    assert AnnouncementChat.objects.get().failures == 0


def test_unanswered_connection_is_not_a_lost_answer(place: Place) -> None:
    """A firewall drops the packets: the connection is neither accepted nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        full = []  # these fill the backlog, so that the next connection is not answered
        for _ in range(4):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(address)
            full.append(each)
        place.settings.TELEGRAM_API_URL = f"http://127.0.0.1:{address[1]}"
        order = place.order()

        show(order)
        for each in full:
            each.close()

    row = row_of(order)
    assert (row.state, row.lost_answers) == (AnnouncementState.WAITING, 0)


def test_slow_answer_is_waited_for(place: Place) -> None:
    place.api.fault("sendMessage", SLOW(0.5))

    assert bot_api.send(target=Target(place.group.id), message=Message("text", [], 1))


def test_failure_of_one_order_does_not_stop_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, fine = place.order(), place.order()
    shown = real_render

    def render(fulfilment: Fulfilment, **options: Any) -> Message:
        if fulfilment == broken:
            raise ValueError
        return shown(fulfilment, **options)

    monkeypatch.setattr(posting, "render", render)

    for _ in range(2):
        sweep()

    (message,) = place.posted()
    assert fine.order_reference in message.text
    monkeypatch.undo()
    sweep()
    assert DOUBT not in place.posted()[1].text
