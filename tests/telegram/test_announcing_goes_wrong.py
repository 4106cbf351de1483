"""Whatever Telegram or the network does, nobody is told twice in silence, and nothing is lost."""

import json
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.urls import reverse

from audit.models import AuditAction, AuditEntry
from embedded.environment import PROJECT
from embedded.processes import free_port
from operators.models import (
    Announcement,
    AnnouncementChat,
    AnnouncementRoute,
    AnnouncementState,
    PlatformSettings,
)
from operators.reconcile import reconcile
from operators.telegram import announce, bot_api
from operators.telegram.announcement_requests import note_stray, request_refresh
from operators.telegram.message import Message
from operators.telegram.message import render as real_render
from operators.telegram.platform_settings import Target
from tests.factories import make_operator, make_topup_product
from tests.live import database_url
from tests.operators.back_office import list_url, make_staff, signed_in, url
from tests.telegram.announcing import (
    Place,
    later,
    move,
    operators_chat,
    pause_of,
    row_of,
    show,
    sweep,
)
from tests.telegram.faults import DROP, ERROR, HANG, SLOW, TOO_MANY, Fault
from topups.models import Fulfilment
from topups.transitions import Move

pytestmark = pytest.mark.django_db

DOUBT = "may be in the chat twice"
ANSWER_LOST: dict[str, Fault] = {
    "timeout after the post": HANG(3, after=True),
    "connection lost after the post": DROP(after=True),
    "connection lost before the post": DROP(),
    "500": ERROR(500),
    "502": ERROR(502, "Bad Gateway"),
}


@pytest.fixture
def place(settings: Any) -> Iterator[Place]:
    with operators_chat(settings) as place:
        settings.TELEGRAM_TIMEOUT_SECONDS = 2
        yield place


def given_up() -> list[str]:
    entries = AuditEntry.objects.filter(action=AuditAction.ANNOUNCEMENT_GIVEN_UP)
    return list(entries.order_by("pk").values_list("reference", flat=True))


# Telegram asks to wait.


def test_a_chat_that_is_told_to_wait_is_left_alone_and_others_are_not(place: Place) -> None:
    other = place.api.add_group("Other")
    gems = make_topup_product(announce=True)
    AnnouncementRoute.objects.create(product=gems, chat_id=other.id)
    place.api.fault("sendMessage", TOO_MANY(37))
    for product in (None, None, gems):
        place.order(product=product)

    assert sweep()["announced"] == 1
    assert sweep()["announced"] == 0

    assert [len(place.posted(chat)) for chat in (place.group, other)] == [0, 1]
    assert place.api.count("sendMessage") == 2
    assert 30 < pause_of(place.group) <= 37
    later(seconds=37)
    assert sweep()["announced"] == 2
    assert [DOUBT in message.text for message in place.posted()] == [False, False]


def test_an_edit_that_is_told_to_wait_comes_later(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.fault("editMessageText", TOO_MANY(37))
    move(order, Move.COMPLETE)
    show(order)
    show(order)
    assert place.api.count("editMessageText") == 1

    later(seconds=37)
    sweep()

    assert "Delivered" in place.posted()[0].text


# The network.


def test_what_was_surely_not_sent_is_sent_later_without_a_doubt(place: Place) -> None:
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


@pytest.mark.parametrize("fault", ANSWER_LOST)
def test_a_lost_answer_leads_to_a_second_message_that_says_so(place: Place, fault: str) -> None:
    place.api.fault("sendMessage", ANSWER_LOST[fault])
    order = place.order()
    show(order)
    sweep()
    before = place.posted()
    assert len(before) == (1 if ANSWER_LOST[fault].after else 0)  # and no other at once

    later(minutes=10)
    sweep()
    sweep()

    message = place.posted()[-1]
    assert len(place.posted()) == len(before) + 1
    assert DOUBT in message.text
    assert row_of(order).message_id == message.id


def test_the_first_press_on_the_unknown_message_replaces_it(place: Place) -> None:
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


def test_a_press_on_the_only_message_makes_it_known_and_nothing_is_posted(place: Place) -> None:
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


def test_a_press_elsewhere_replaces_nothing(place: Place) -> None:
    order = place.order()
    show(order)
    before = row_of(order)

    note_stray(fulfilment_id=order.pk, chat_id=4711, message_id=1)

    assert row_of(order) == before
    assert row_of(order).former_message_id is None


def test_after_a_few_lost_answers_nothing_is_posted_any_more(place: Place) -> None:
    place.api.fault("sendMessage", DROP(after=True), times=10)
    order = place.order()
    for _ in range(6):
        sweep()
        later(minutes=10)

    assert len(place.posted()) == 3
    assert row_of(order).state == AnnouncementState.GIVEN_UP
    assert given_up() == [order.order_reference]


def test_a_worker_that_dies_while_it_sends_leaves_a_doubt(place: Place) -> None:
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


def test_a_repetition_that_was_lost_leaves_the_known_message_true(place: Place) -> None:
    order = place.order()
    show(order)
    Announcement.objects.update(repeat_asked=True)
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
    """As when the process is gone."""


def _die(**arguments: object) -> int:
    raise _Killed


def test_one_order_that_fails_holds_up_no_other(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, fine = place.order(), place.order()
    shown = real_render

    def render(fulfilment: Fulfilment, **options: Any) -> Message:
        if fulfilment == broken:
            raise ValueError
        return shown(fulfilment, **options)

    monkeypatch.setattr(announce, "render", render)

    for _ in range(2):
        sweep()

    (message,) = place.posted()
    assert fine.order_reference in message.text
    monkeypatch.undo()
    sweep()
    assert DOUBT not in place.posted()[1].text


# What will never work.


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
def test_an_order_that_cannot_be_announced_is_given_up_with_a_mark(
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


def test_what_was_given_up_is_announced_again_by_hand(place: Place) -> None:
    place.group.kicked = True
    order, taken = place.order(), place.order()
    sweep()
    sweep()
    place.group.kicked = False
    move(taken, Move.COMPLETE)
    sweep()
    assert place.posted() == []
    may_only_look = make_staff("operators.view_announcement")
    may = make_staff("operators.view_announcement", "operators.announce_again")
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

    assert "1 will be announced again" in answer.content.decode()
    (message,) = place.posted()
    assert order.order_reference in message.text
    entry = AuditEntry.objects.get(action=AuditAction.ANNOUNCEMENT_RESUMED)
    assert (entry.actor, entry.reference) == (may, order.order_reference)


def test_what_is_announced_can_be_announced_again_by_hand(place: Place) -> None:
    order = place.order()
    show(order)
    asked = {"action": "announce_again_selected", "_selected_action": [row_of(order).pk]}

    signed_in().post(list_url(Announcement), asked)
    sweep()
    sweep()

    first, second = place.posted()
    assert (first.buttons, second.buttons) == ([], ["Claim"])


def test_an_edit_that_can_never_be_made_is_given_up(place: Place) -> None:
    order = place.order()
    show(order)
    place.group.kicked = True
    move(order, Move.CLAIM)

    sweep()
    sweep()

    assert place.api.count("editMessageText") == 1
    assert given_up() == [order.order_reference]


def test_a_token_that_is_refused_gives_nothing_up(place: Place) -> None:
    order = place.order()
    place.settings.TELEGRAM_BOT_TOKEN = "4711:another-token-altogether"
    show(order)
    place.settings.TELEGRAM_BOT_TOKEN = place.api.token
    later(minutes=10)

    sweep()

    assert given_up() == []
    (message,) = place.posted()
    assert DOUBT not in message.text


# Messages and chats that change.


def test_a_group_that_becomes_a_supergroup_is_followed(place: Place) -> None:
    route = AnnouncementRoute.objects.create(
        product=make_topup_product(announce=True), chat_id=place.group.id
    )
    shown, order = place.order(), None
    show(shown)
    new = place.api.migrate(place.group)
    order = place.order()

    show(order)
    sweep()
    request_refresh(fulfilment_id=shown.pk)
    sweep()
    sweep()

    assert PlatformSettings.objects.get().chat_id == new.id
    route.refresh_from_db()
    assert route.chat_id == new.id
    assert [DOUBT in message.text for message in place.posted(new)] == [False, False]
    assert AuditEntry.objects.filter(action=AuditAction.CHAT_MOVED).count() == 1
    assert given_up() == []


def test_a_deleted_message_of_a_waiting_order_is_announced_anew(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    request_refresh(fulfilment_id=order.pk)

    sweep()
    sweep()

    (message,) = place.posted()
    assert DOUBT not in message.text
    assert row_of(order).message_id == message.id


def test_a_deleted_message_of_a_claimed_order_is_announced_anew(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    move(order, Move.CLAIM)

    sweep()
    sweep()

    (message,) = place.posted()
    assert "Claimed" in message.text
    assert "Release" in message.buttons


def test_a_deleted_message_of_an_order_that_ended_is_let_go(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    move(order, Move.COMPLETE)

    sweep()
    sweep()

    assert place.posted() == []
    assert row_of(order).state == AnnouncementState.ENDED
    assert given_up() == []


def test_a_message_that_is_right_already_is_no_error(place: Place) -> None:
    order = place.order()
    show(order)
    for _ in range(2):  # the second within the same minute
        request_refresh(fulfilment_id=order.pk)
        sweep()

    row = row_of(order)
    assert (row.state, row.restore_at, row.last_error) == ("announced", None, "")


# The token.


@pytest.mark.parametrize(
    "fault",
    [*ANSWER_LOST.values(), TOO_MANY(3), ERROR(400, "Bad Request: nonsense"), ERROR(403), None],
    ids=str,
)
def test_no_error_holds_the_token(place: Place, fault: Fault | None) -> None:
    if fault is None:
        place.settings.TELEGRAM_API_URL = f"http://127.0.0.1:{free_port()}"
    else:
        place.api.fault("sendMessage", fault)

    with pytest.raises(bot_api.Trouble) as error:
        bot_api.send(target=Target(place.group.id), message=Message("text", [], 1))

    whole = "".join(traceback.format_exception(error.value))
    assert place.api.token not in whole
    assert f"bot{place.api.token.partition(':')[0]}" not in whole
    assert error.value.__context__ is None


def test_a_slow_answer_is_waited_for(place: Place) -> None:
    place.api.fault("sendMessage", SLOW(0.5))

    assert bot_api.send(target=Target(place.group.id), message=Message("text", [], 1))


@pytest.mark.django_db(transaction=True)
def test_no_log_holds_the_token_however_much_is_logged(place: Place) -> None:
    place.api.fault("sendMessage", ERROR(500), times=1)
    place.order()
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "LOG_LEVEL": "DEBUG",
        "TELEGRAM_BOT_TOKEN": place.api.token,
        "TELEGRAM_API_URL": place.api.url,
    }

    def run(*arguments: str) -> tuple[str, str]:
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout, ended.stderr

    failed = run("sweep_announcements")
    later(minutes=10)
    done = run("sweep_announcements")
    careless = run(
        "shell",
        "--command=import logging; from django.conf import settings;"
        " logging.warning(settings.TELEGRAM_BOT_TOKEN)",
    )

    assert json.loads(failed[0])["announced"] == 0
    assert json.loads(done[0])["announced"] == 1
    assert "***" in careless[1]
    assert place.api.token not in "".join((*failed, *done, *careless))


def test_the_chats_in_trouble_are_shown_with_the_settings(place: Place) -> None:
    place.api.fault("sendMessage", TOO_MANY(37))
    show(place.order())

    page = signed_in().get(reverse("admin:operators_platformsettings_change", args=[1]))

    shown = page.content.decode()
    assert str(place.group.id) in shown
    assert "asks to wait for 37 s" in shown


# What was given up, and is there.


def test_a_message_that_was_given_up_is_true_again_once_telegram_takes_edits(place: Place) -> None:
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


def test_a_press_on_a_message_that_was_given_up_makes_it_true(place: Place) -> None:
    order = place.order()
    show(order)
    place.group.kicked = True
    move(order, Move.COMPLETE)
    show(order)
    place.group.kicked = False

    request_refresh(fulfilment_id=order.pk)
    sweep()

    assert "Delivered" in place.posted()[0].text


def test_a_repetition_that_is_refused_leaves_the_known_message_true(place: Place) -> None:
    """A topic that was closed takes no messages, but edits of those that are there."""
    order = place.order()
    show(order)
    place.api.fault("sendMessage", ERROR(400, "Bad Request: TOPIC_CLOSED"))
    Announcement.objects.update(repeat_asked=True)
    sweep()
    assert row_of(order).state == AnnouncementState.GIVEN_UP

    move(order, Move.COMPLETE)
    show(order)

    assert "Delivered" in place.posted()[0].text


# A network that swallows everything.


def test_a_connection_that_is_never_made_is_no_lost_answer(place: Place) -> None:
    """Packets that a firewall drops: nobody says no, and nothing was sent."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()
        full = []  # of connections that nobody takes, so that the next one is not answered
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
