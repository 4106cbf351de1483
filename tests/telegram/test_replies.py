"""A reply to an order's message is kept as a note of the order."""

from dataclasses import replace
from functools import partial

import pytest
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from operators.telegram.models import Announcement, AnnouncementState, TelegramLink
from operators.telegram.updates.texts import Reply, add_note
from tests.concurrency.racing import race
from tests.factories import buy_topup, make_merchant, make_operator
from tests.telegram.fake_bot_api.objects import Message
from tests.telegram.running import Desk
from topups.models import Channel, Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]


def announced(desk: Desk) -> tuple[Fulfilment, Message]:
    """A new order whose message the bot knows as its own."""
    fulfilment, message = desk.order()
    known = Announcement.objects.filter(fulfilment=fulfilment, message_id=message.id)
    desk.api.wait_for(known.exists, "the worker has stored the message's id", poll=True)
    return fulfilment, message


def notes() -> list[tuple[str, str]]:
    """Who added which note, oldest first."""
    entries = AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED).order_by("pk")
    return list(entries.values_list("actor__username", "note"))


def test_a_reply_after_a_rejection_is_kept_in_the_orders_timeline(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    fulfilment, message = announced(desk)

    answer = desk.ask(anna, desk.group, " the ID has a letter ", reply_to=message)

    assert answer.text.startswith(f"Note kept for {fulfilment.order_reference}.")
    assert notes() == [("anna", "the ID has a letter")]
    entry = AuditEntry.objects.get(action=AuditAction.NOTE_ADDED)
    assert (entry.object_type, entry.object_id) == ("topups.fulfilment", str(fulfilment.pk))


def test_a_reply_that_telegram_delivers_again_is_kept_once(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    _, message = announced(desk)
    desk.ask(anna, desk.group, "one note", reply_to=message)
    before = len(desk.api.bot_messages(desk.group))

    desk.api.replay(1)
    desk.ask(anna, desk.group, "another", reply_to=message)

    assert notes() == [("anna", "one note"), ("anna", "another")]
    assert len(desk.api.bot_messages(desk.group)) == before + 1


def test_strangers_long_texts_and_other_replies_leave_no_note(desk: Desk) -> None:
    anna, _ = desk.staff("anna")
    eve = desk.api.add_user("Eve")
    _, message = announced(desk)

    assert "cannot use this bot" in desk.ask(eve, desk.group, "hello", reply_to=message).text
    assert "not kept" in desk.ask(anna, desk.group, "x" * 3000, reply_to=message).text
    chatter = desk.api.type(eve, desk.group, "good morning")
    desk.api.type(anna, desk.group, "good morning, Eve", reply_to=chatter)
    desk.ask(anna, desk.group, "/queue", reply_to=message)

    assert notes() == []
    assert AuditEntry.objects.filter(action=AuditAction.TELEGRAM_REFUSED).count() == 1


def test_a_reply_that_is_handled_again_after_a_crash_or_twice_at_once_is_kept_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operator = make_operator(channel=Channel.TELEGRAM)
    TelegramLink.objects.create(user=operator.user, telegram_user_id=1)
    fulfilment = Fulfilment.objects.get(order_reference=buy_topup(make_merchant()))
    Announcement.objects.create(
        fulfilment=fulfilment,
        state=AnnouncementState.ANNOUNCED,
        chat_id=-1001,
        message_id=5,
        announced_at=timezone.now(),
    )
    crashed = Reply(telegram_user_id=1, chat_id=-1001, message_id=6, to=5, text="one note")
    doubled = replace(crashed, message_id=7, text="another")

    def crash(handled: str) -> bool:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("operators.telegram.updates.texts.note_handled", crash)
        with pytest.raises(SystemExit):
            add_note(crashed)
    answer = add_note(crashed)
    answers = race([partial(add_note, doubled)] * 4)

    assert answer is not None
    assert answer.startswith(f"Note kept for {fulfilment.order_reference}.")
    assert notes() == [(operator.user.username, text) for text in ("one note", "another")]
    assert len([each for each in answers if each]) == 1
