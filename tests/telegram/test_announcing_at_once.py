"""Concurrent processes post an order once, and the last edit shows the present state."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from operators.telegram import announcements, bot_api
from operators.telegram.chats import Platform, read_platform
from operators.telegram.messages import posting
from operators.telegram.messages.message import render
from operators.telegram.messages.posting import Due, Outcome, PostingClaim
from operators.telegram.messages.sweep import _not_announced, _not_claimed
from operators.telegram.models import Announcement, AnnouncementState
from tests.concurrency.racing import race, start
from tests.factories import make_operator
from tests.telegram.announcing import (
    Place,
    later,
    move,
    row_of,
    show,
    sweep,
)
from tests.telegram.fake_bot_api.faults import SLOW, TOO_MANY
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

WORKERS = 6
ORDERS = 5


def _in_each_worker(call: Any) -> None:
    def run() -> None:
        try:
            call()
        finally:
            connection.close()

    race([run] * WORKERS)


def _posts_of_each(place: Place, orders: list[Fulfilment]) -> list[int]:
    texts = [message.text for message in place.posted()]
    return [sum(order.order_reference in text for text in texts) for order in orders]


def test_one_of_many_workers_announces_each_order(place: Place) -> None:
    place.api.fault("sendMessage", SLOW(0.05), times=ORDERS)
    orders = [place.order() for _ in range(ORDERS)]

    _in_each_worker(sweep)

    assert _posts_of_each(place, orders) == [1] * ORDERS
    assert [row_of(order).attempts for order in orders] == [1] * ORDERS


def test_control_without_the_claim_orders_are_announced_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that first reads and then writes shows that the race is real."""
    monkeypatch.setattr(posting, "_claim", _careless_claim)
    place.api.fault("sendMessage", SLOW(0.05), times=ORDERS * WORKERS)
    orders = [place.order() for _ in range(ORDERS)]

    _in_each_worker(sweep)

    assert sum(_posts_of_each(place, orders)) > ORDERS


def _careless_claim(due: Due, platform: Platform) -> PostingClaim | Outcome:
    row, _ = Announcement.objects.get_or_create(fulfilment_id=due.fulfilment_id)
    if row.state != AnnouncementState.WAITING:
        return Outcome.SKIPPED
    time.sleep(0.05)  # another worker reads the same state meanwhile
    Announcement.objects.filter(pk=row.pk).update(
        state=AnnouncementState.SENDING,
        attempts=F("attempts") + 1,
        busy_until=timezone.now() + announcements.LEASE,
        chat_id=due.target.chat_id,
    )
    fulfilment = Fulfilment.objects.select_related("product__category").get(pk=due.fulfilment_id)
    message = render(fulfilment, now=timezone.now(), zone=platform.zone)
    return PostingClaim(row, fulfilment, due.target, row.attempts + 1, message)


def test_one_of_many_workers_repeats_each_order(place: Place) -> None:
    orders = [place.order() for _ in range(ORDERS)]
    sweep()
    Announcement.objects.update(repeat_requested=True)

    _in_each_worker(sweep)

    assert _posts_of_each(place, orders) == [2] * ORDERS
    assert sum("Announced again" in message.text for message in place.posted()) == ORDERS


def test_order_found_due_is_not_posted_after_another_process_posted_it(place: Place) -> None:
    order = place.order()
    platform = read_platform()
    (due,) = _not_announced(platform)
    show(order)
    Announcement.objects.update(repeat_requested=True)
    (again,) = _not_claimed(platform)
    sweep()

    assert posting.post(due, platform) == Outcome.SKIPPED
    assert posting.post(again, platform) == Outcome.SKIPPED

    assert len(place.posted()) == 2


def test_chat_limit_holds_for_all_workers_together(place: Place) -> None:
    place.settings.TELEGRAM_MESSAGES_PER_MINUTE = 3
    for _ in range(ORDERS):
        place.order()

    _in_each_worker(sweep)

    assert len(place.posted()) == 3


def test_order_moved_while_posted_ends_with_the_present_state(place: Place) -> None:
    order = place.order()
    place.api.fault("sendMessage", SLOW(0.5))

    with ThreadPoolExecutor(1) as pool:
        posting = start(pool, show, order)
        place.api.wait_for(place.posted, "the message is there")
        move(order, Move.COMPLETE)
        show(order)  # finds the row busy, and returns
        posting.result()

    (message,) = place.posted()
    assert "Delivered" in message.text
    assert message.buttons == []


def test_overtaking_edits_end_with_the_present_state(place: Place) -> None:
    order, operator = place.order(), make_operator()
    show(order)
    place.api.fault("editMessageText", SLOW(0.3), times=2)
    move(order, Move.CLAIM, operator)

    with ThreadPoolExecutor(3) as pool:
        first = start(pool, show, order)
        place.api.wait_for(
            lambda: "Claimed" in place.posted()[0].text, "the first edit is under way"
        )
        move(order, Move.REVIEW, operator)
        others = [start(pool, show, order) for _ in range(2)]
        for each in (first, *others):
            each.result()

    (message,) = place.posted()
    assert "In review" in message.text
    assert row_of(order).busy_until is None


@pytest.mark.parametrize("round_", range(3))
def test_many_moves_and_many_edits_end_with_the_present_state(place: Place, round_: int) -> None:
    order, operator = place.order(), make_operator(senior=True)
    show(order)
    moves = [Move.CLAIM, Move.RELEASE] * 5 + [Move.COMPLETE]

    with ThreadPoolExecutor(4) as pool:
        shown = []
        for each in moves:
            move(order, each, operator)
            shown.append(start(pool, show, order))
        for each_shown in shown:
            each_shown.result()

    (message,) = place.posted()
    assert "Delivered" in message.text
    assert row_of(order).state == AnnouncementState.ENDED


def test_limit_hit_by_one_worker_stops_all(place: Place) -> None:
    place.api.fault("sendMessage", TOO_MANY(60), times=100)
    for _ in range(ORDERS):
        place.order()
    sweep()
    calls = place.api.count("sendMessage")

    _in_each_worker(sweep)

    assert place.api.count("sendMessage") == calls == 1
    place.api.clear_faults()
    later(minutes=1)
    assert sweep()["announced"] == ORDERS


def test_late_post_is_retired(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease ends, another process posts the order, and then the first one gets its answer."""
    order = place.order()
    send = bot_api.send

    def wake_up_late(**arguments: Any) -> int:
        late: int = send(**arguments)
        monkeypatch.setattr(bot_api, "send", send)
        later(minutes=2)
        assert sweep()["announced"] == 1
        return late

    monkeypatch.setattr(bot_api, "send", wake_up_late)
    show(order)

    late, known = place.posted()
    assert row_of(order).message_id == known.id
    assert (late.buttons, known.buttons) == ([], ["Claim"])
    assert "may be in the chat twice" in known.text


def test_purchase_does_not_call_telegram(place: Place) -> None:
    place.order()

    assert place.api.calls == []
    assert not Announcement.objects.filter(Q()).exists()
    assert not transaction.get_connection().in_atomic_block


def test_edit_after_its_lease_is_corrected(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stalled process overwrites a newer edit, and no later event would trigger another one."""
    order, anna = place.order(), make_operator()
    show(order)
    edit = bot_api.edit

    def wake_up_late(**arguments: Any) -> None:
        monkeypatch.setattr(bot_api, "edit", edit)
        later(minutes=2)
        move(order, Move.COMPLETE, anna)
        sweep()
        edit(**arguments)

    monkeypatch.setattr(bot_api, "edit", wake_up_late)
    move(order, Move.CLAIM, anna)
    show(order)
    sweep()

    assert "Delivered" in place.posted()[0].text
    assert place.posted()[0].buttons == []
