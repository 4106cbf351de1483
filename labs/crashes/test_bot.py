"""Failures around the bot: Telegram, the network, the database, and the bot itself."""

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.cache.backends.redis import RedisCache
from django.db import connection, transaction

from operators.frame.limits import ALIVE_SECONDS
from operators.telegram.messages.sweep import sweep_announcements
from operators.telegram.models import Announcement
from operators.telegram.updates import bot_cache
from tests.commands import refusal, run
from tests.live import owner_url
from tests.quick_starts import run_quickly
from tests.tasks.running import wait_until
from tests.telegram.fake_bot_api.faults import DROP, ERROR, HANG, TOO_MANY, Disorder, Fault
from tests.telegram.fake_bot_api.objects import Message, Person, Press
from tests.telegram.running import Desk, Telegram, a_bot
from topups.models import Fulfilment, FulfilmentEvent
from wallets.models import EntryKind, LedgerEntry

NAMES = ("anna", "berta")
QUESTIONS = {
    "Delivered": "mark as delivered?",
    "Reject, refund": "reject and refund 4.99 USD?",
}
ORDERS = int(os.environ.get("CRASHES_ORDERS", "20"))
PATIENCE = 4.0  # seconds after which a person presses again

pytestmark = pytest.mark.django_db(transaction=True)


def moves(fulfilment: Fulfilment) -> list[str]:
    events = FulfilmentEvent.objects.filter(fulfilment=fulfilment)
    return list(events.exclude(from_status=None).values_list("move", flat=True))


@pytest.mark.parametrize(
    "fault", [TOO_MANY(1), ERROR(500), ERROR(502, "Bad Gateway"), HANG(6), DROP(), DROP(after=True)]
)
def test_failed_answer_is_sent_again(desk: Desk, fault: Fault) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    desk.api.fault("answerCallbackQuery", fault)

    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."

    desk.api.settle()
    assert moves(fulfilment) == ["claim"]
    assert len(desk.api.bot_messages(desk.group)) == 1


@pytest.mark.parametrize("fault", [TOO_MANY(1), ERROR(500), HANG(3), DROP()])
def test_bot_survives_failed_fetches(desk: Desk, fault: Fault) -> None:
    anna, _ = desk.staff("anna")
    _, message = desk.order()
    desk.api.fault("getUpdates", fault, times=2)
    desk.api.end_polls()

    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."


def test_failed_question_is_shown_by_the_next_press(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    desk.press(anna, message, "Claim")
    desk.shows(message, "Claimed")
    desk.api.fault("editMessageReplyMarkup", ERROR(400, "Bad Request: nonsense"))
    desk.press(anna, message, "Delivered")
    desk.api.settle()
    assert "Delivered" in message.buttons
    question = "anna: mark as delivered?"
    for _ in range(5):  # the worker may still restore the buttons, and remove a new question
        desk.press(anna, message, "Delivered")
        with suppress(AssertionError):
            desk.api.wait_for(lambda: question in message.buttons, question, 10.0)
            break
    desk.press(anna, message, question)
    assert moves(fulfilment) == ["claim", "complete"]


def test_press_moves_once_if_the_bot_is_killed_before_it_answers(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    desk.api.fault("answerCallbackQuery", HANG(60))
    press = desk.begin(anna, message, "Claim")
    wait_until(lambda: moves(fulfilment) == ["claim"], "the claim")

    desk.bot.kill()
    desk.api.clear_faults()
    assert press.answer is None
    desk.bot.start()

    desk.api.settle()
    # A kill just after the move loses the task that edits the message. The sweep repeats it.
    wait_until(
        lambda: sweep_announcements() and "Claimed by anna" in message.text, "the claim is shown"
    )
    again = desk.api.press_data(anna, message, press.data).wait()
    assert again.text == "You have already done this. The order is claimed by you."
    assert moves(fulfilment) == ["claim"]


def test_a_hanging_answer_holds_nobody_else_up(desk: Desk) -> None:
    anna, berta = (desk.staff(name)[0] for name in ("anna", "berta"))
    (_, one), (_, other) = desk.order(), desk.order()
    desk.api.fault("answerCallbackQuery", HANG(60))
    held = desk.begin(anna, one, "Claim")
    desk.shows(one, "Claimed by anna")

    told = desk.press(berta, other, "Claim")

    assert held.answer is None
    assert told.text == "Claimed. The order is assigned to you."
    assert held.wait().text == "Claimed. The order is assigned to you."


def test_stop_waits_for_an_answer_that_hangs(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    _, message = desk.order()
    desk.api.fault("answerCallbackQuery", HANG(60))
    press = desk.begin(anna, message, "Claim")
    desk.shows(message, "Claimed by anna")

    assert desk.bot.stop() == 0

    assert press.answer is not None


def test_stale_press_delivered_twice_gets_one_message_in_the_chat(desk: Desk) -> None:
    anna, berta = (desk.staff(name)[0] for name in ("anna", "berta"))
    _, message = desk.order()
    claim = message.data("Claim")
    desk.press(berta, message, "Claim")
    desk.shows(message, "Claimed by berta")
    desk.api.query_seconds = 0.0  # too old to be answered

    def told() -> int:
        return sum(one.text.startswith("anna: ") for one in desk.api.bot_messages(desk.group))

    desk.api.press_data(anna, message, claim)
    desk.api.wait_for(told, "an answer in the chat")
    desk.api.settle()
    assert len(desk.api.replay(1)) == 1
    desk.api.settle()
    desk.ask(berta, desk.group, "/help")  # answered after the press

    assert told() == 1


def test_press_is_not_lost_if_the_bot_is_killed_before_it_decides(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    with transaction.atomic():
        Fulfilment.objects.select_for_update().get(pk=fulfilment.pk)
        press = desk.begin(anna, message, "Claim")
        wait_until(_somebody_waits_for_a_lock, "the bot waits for the order")
        desk.bot.kill()
    wait_until(lambda: not _somebody_waits_for_a_lock(), "the session is gone")
    desk.bot.start()

    press.wait()
    desk.api.settle()
    assert moves(fulfilment) == ["claim"]


def test_sigterm_finishes_the_updates_in_progress(desk: Desk) -> None:
    people = [desk.staff(name)[0] for name in ("anna", "berta", "carla")]
    orders = [desk.order() for _ in people]
    desk.bot.stop()  # its next fetch gets the three presses together
    with transaction.atomic():
        Fulfilment.objects.select_for_update().get(pk=orders[0][0].pk)
        presses = [
            desk.begin(person, message, "Claim")
            for person, (_, message) in zip(people, orders, strict=True)
        ]
        desk.bot.start()
        wait_until(_somebody_waits_for_a_lock, "the bot waits for the order")
        desk.bot.terminate()

    assert desk.bot.stop() == 0
    assert all(press.answer for press in presses)
    assert desk.api.pending() == []  # confirmed: the next bot does not receive them
    assert [moves(fulfilment) for fulfilment, _ in orders] == [["claim"]] * 3


def test_press_too_old_to_answer_is_answered_in_the_chat(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    berta, _ = desk.staff("berta")
    _, message = desk.order()
    claim = message.data("Claim")
    desk.press(berta, message, "Claim")
    desk.shows(message, "Claimed by berta")
    assert desk.bot.stop() == 0
    desk.api.query_seconds = 0.01
    desk.api.press_data(anna, message, claim)
    time.sleep(0.02)
    desk.bot.start()

    desk.api.wait_for(
        lambda: any(
            one.text.startswith("anna: ") and "claimed by berta" in one.text
            for one in desk.api.bot_messages(desk.group)
        ),
        "an answer in the chat",
    )


def test_press_is_answered_while_the_database_is_slow(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    with transaction.atomic():
        Fulfilment.objects.select_for_update().get(pk=fulfilment.pk)
        press = desk.begin(anna, message, "Claim")
        assert "longer than usual" in press.wait(10).text
        assert moves(fulfilment) == []
    desk.shows(message, "Claimed by anna")
    assert moves(fulfilment) == ["claim"]


def test_press_is_answered_while_the_database_is_down(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = desk.order()
    claim = message.data("Claim")
    with _no_connections():
        answer = desk.api.press_data(anna, message, claim).wait()
        typed = desk.ask(anna, desk.group, "/queue")
    assert answer.alert
    assert "Press again" in answer.text
    assert "not available" in typed.text
    assert moves(fulfilment) == []

    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."
    assert desk.bot.exit_code() is None


def test_lost_database_connection_is_replaced(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    _, message = desk.order()
    desk.press(anna, message, "Claim")
    desk.api.wait_for(lambda: "Release" in message.buttons, "the message shows the claim")
    wait_until(
        lambda: not Announcement.objects.exclude(busy_until=None).exists(),
        "the worker has finished its edit: an interrupted one would hold the row for its lease",
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert desk.press(anna, message, "Release").text.startswith("Released")


@dataclass
class Work:
    """An order, and an operator who wants it to end like this."""

    person: Person
    message: Message
    end: str
    press: Press | None = None
    pressed: str = ""

    def step(self, desk: Desk) -> bool:
        """Presses the next button, or the same one after PATIENCE. Returns whether the order has
        ended."""
        labels = self.message.buttons
        if not labels:
            return True
        asked = [f"{name}: {QUESTIONS[self.end]}" for name in NAMES]
        wanted = next(one for one in (*asked, "Go back", self.end, "Claim") if one in labels)
        if self.press is not None:
            is_new = time.monotonic() - self.press.at < PATIENCE
            if is_new and (self.press.answer is None or wanted == self.pressed):
                return False
        self.press, self.pressed = desk.api.press(self.person, self.message, wanted), wanted
        return False


def test_each_order_ends_once_while_presses_are_lost_repeated_and_reordered(desk: Desk) -> None:
    people = [desk.staff(name)[0] for name in NAMES]
    orders = [desk.order() for _ in range(ORDERS)]
    desk.api.disorder = Disorder(lost=0.1, duplicated=0.1, reordered=0.1)
    working = [
        Work(people[number % 2], message, random.choice(list(QUESTIONS)))
        for _, message in orders
        for number in random.choice(((0,), (1,), (0, 1)))  # two may want different ends
    ]
    begun = time.monotonic()
    while working := [work for work in working if not work.step(desk)]:
        assert time.monotonic() - begun < 20 * ORDERS, working
        desk.api.pause(0.02)
    desk.api.settle()

    assert all(desk.api.disorder.seen.values()), desk.api.disorder.seen
    for fulfilment, message in orders:
        (end,) = set(moves(fulfilment)) & {"complete", "reject"}
        assert moves(fulfilment).count(end) == 1
        if end == "reject":
            wait_until(lambda one=fulfilment: refunds_of(one) == 1, "a refund")  # type: ignore[misc]
        assert ("Delivered" if end == "complete" else "Rejected") in message.text
    run("reconcile")


def refunds_of(fulfilment: Fulfilment) -> int:
    entries = LedgerEntry.objects.filter(order_reference=fulfilment.order_reference)
    return entries.filter(kind=EntryKind.REFUND).count()


def test_check_command_reports_a_running_bot(desk: Desk) -> None:
    wait_until(lambda: _check(desk).returncode == 0, "a heartbeat")
    sign = json.loads(_check(desk).stdout)
    assert sign["status"] == "ok"
    assert sign["seconds_ago"] < ALIVE_SECONDS

    desk.bot.kill()
    theirs = RedisCache(settings.REDIS_URL, {"KEY_PREFIX": ""})
    assert theirs.delete(bot_cache.key())  # as if it had expired
    gone = _check(desk)
    assert gone.returncode == 1
    assert "No bot has reached Telegram" in gone.stderr


def test_refused_token_ends_the_bot_with_one_line(telegram: Telegram) -> None:
    token = "4711:this-is-not-the-token-at-all"
    environment = {**telegram.environment, "TELEGRAM_BOT_TOKEN": token}
    with a_bot(telegram.api, environment) as bot:
        bot.start(wait=False)
        wait_until(lambda: bot.exit_code() is not None, "the bot ends")
        assert bot.exit_code() == 1
        assert "Telegram does not accept TELEGRAM_BOT_TOKEN" in bot.log
        assert token not in bot.log
        assert "Traceback" not in bot.log


def test_run_bot_reports_a_missing_token(settings: Any) -> None:
    settings.TELEGRAM_BOT_TOKEN = ""
    assert "TELEGRAM_BOT_TOKEN is not set" in refusal("run_bot")


def test_bot_starts_while_telegram_is_down(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    _, message = desk.order()
    desk.bot.stop()
    desk.api.fault("getMe", DROP(), times=2)
    desk.api.fault("setMyCommands", ERROR(502, "Bad Gateway"))
    desk.bot.start()
    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."


def test_two_bots_do_nothing_twice(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    with a_bot(desk.api, desk.telegram.environment) as other:
        other.start()
        orders = [desk.order() for _ in range(3)]
        for fulfilment, message in orders:
            desk.press(anna, message, "Claim")
            desk.press(anna, message, "Release")
            assert moves(fulfilment) == ["claim", "release"]


def test_probe_reports_the_heartbeat(client: Any) -> None:
    cache.delete(bot_cache.key())
    assert client.get("/readyz/bot").status_code == 503
    bot_cache.beat()
    answer = client.get("/readyz/bot")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    cache.delete(bot_cache.key())


def _check(desk: Desk) -> CompletedProcess[str]:
    environment = {**os.environ, **desk.telegram.environment}
    return run_quickly(["manage.py", "run_bot", "--check"], environment=environment)


@contextmanager
def _no_connections() -> Iterator[None]:
    """Closes all other connections to the test's database and refuses new ones."""
    url = urlsplit(owner_url())
    name = url.path.removeprefix("/")
    me = connection.connection.info.backend_pid
    with psycopg.connect(url._replace(path="/postgres").geturl(), autocommit=True) as other:
        other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            other.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = %s AND pid <> %s",
                [name, me],
            )
            yield
        finally:
            other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # kept for the whole transaction
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
