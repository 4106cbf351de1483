"""Each order is announced once, in the chat of its route."""

from datetime import datetime, timedelta

import pytest
from django.db.models import F

from operators.telegram.announcements import note_question, note_stray, request_refresh
from operators.telegram.models import Announcement, AnnouncementRoute, AnnouncementState
from tests.factories import make_category, make_operator, make_topup_product
from tests.neighbour import ours
from tests.telegram.announcing import (
    Place,
    later,
    move,
    row_of,
    show,
    sweep,
)
from topups.fulfilment.refunds import credit_topup, sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment

pytestmark = pytest.mark.django_db


def test_order_is_announced_once(place: Place) -> None:
    order = place.order()

    show(order)
    for _ in range(2):
        show(order)
        sweep()

    (message,) = place.posted()
    assert order.order_reference in message.text
    assert message.buttons == ["Claim"]
    assert message.edits == []
    row = row_of(order)
    assert (row.state, row.message_id, row.chat_id) == ("announced", message.id, place.group.id)


def test_sweep_announces_orders_whose_task_was_lost(place: Place) -> None:
    orders = [place.order() for _ in range(3)]

    assert sweep() == {"edited": 0, "announced": 3, "repeated": 0}

    for order, message in zip(orders, place.posted(), strict=True):  # oldest first
        assert order.order_reference in message.text


@pytest.mark.parametrize("reason", ["not marked", "off", "no chat", "no token"])
def test_nothing_is_sent_unless_product_and_settings_allow_it(place: Place, reason: str) -> None:
    order = place.order(product=make_topup_product(announce=reason != "not marked"))
    if reason == "off":
        place.set(announcing=False)
    if reason == "no chat":
        place.set(chat_id=None)
    if reason == "no token":
        place.settings.TELEGRAM_BOT_TOKEN = ""

    show(order)
    sweep()

    assert place.api.calls == []
    assert not ours(Announcement).exists()


def test_announcing_can_be_switched_on_at_any_time(place: Place) -> None:
    place.set(announcing=False)
    place.order()
    sweep()
    place.set(announcing=True)

    sweep()

    assert len(place.posted()) == 1


def test_messages_are_still_edited_after_announcing_is_switched_off(place: Place) -> None:
    order = place.order()
    show(order)
    place.set(announcing=False)
    move(order, Move.COMPLETE)

    show(order)

    (message,) = place.posted()
    assert "Delivered" in message.text


def test_product_route_wins_over_category_route_and_default_chat(place: Place) -> None:
    of_category, of_product = place.api.add_group("Games"), place.api.add_group("Gems", forum=True)
    topic = place.api.add_topic(of_product)
    category = make_category()
    gems = make_topup_product(category=category, announce=True)
    AnnouncementRoute.objects.create(category=category, chat_id=of_category.id)
    AnnouncementRoute.objects.create(product=gems, chat_id=of_product.id, topic_id=topic)

    for product in (gems, make_topup_product(category=category, announce=True), None):
        place.order(product=product)
    sweep()

    chats = (of_product, of_category, place.group)
    assert [len(place.posted(chat)) for chat in chats] == [1, 1, 1]
    assert place.posted(of_product)[0].thread == topic


def test_route_works_without_a_default_chat(place: Place) -> None:
    place.set(chat_id=None)
    gems = make_topup_product(announce=True)
    AnnouncementRoute.objects.create(product=gems, chat_id=place.group.id)
    place.order()

    place.order(product=gems)

    assert sweep()["announced"] == 1


def test_order_claimed_at_the_desk_first_is_announced_after_its_release(place: Place) -> None:
    order, operator = place.order(), make_operator()
    move(order, Move.CLAIM, operator)
    show(order)
    sweep()
    assert place.posted() == []

    move(order, Move.RELEASE, operator)
    show(order)

    (message,) = place.posted()
    assert "released by" in message.text


def test_message_follows_every_move_of_the_order(place: Place) -> None:
    order, senior = place.order(), make_operator(senior=True)
    show(order)
    seen = []
    for each in (Move.CLAIM, Move.RELEASE, Move.CLAIM, Move.REVIEW, Move.REJECT):
        move(order, each, senior)
        show(order)
        (message,) = place.posted()
        seen.append((message.text.splitlines()[0].partition(" by ")[0], len(message.buttons)))

    assert seen == [
        ("🔵 Claimed", 6),
        ("🟡 Waiting: released", 1),
        ("🔵 Claimed", 6),
        ("🟠 In review: sent", 2),
        ("❌ Rejected (refund due)", 0),
    ]
    assert senior.user.username in message.text
    sweep_refunds()
    show(order)
    assert row_of(order).state == AnnouncementState.ENDED


def test_ended_order_causes_no_more_calls(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.REJECT)
    show(order)
    sweep_refunds()
    show(order)
    calls = len(place.api.calls)

    show(order)
    sweep()

    assert len(place.api.calls) == calls == 3


def test_message_says_when_the_refund_was_credited(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.REJECT)
    show(order)
    (message,) = place.posted()
    assert "refund due" in message.text
    assert sweep()["edited"] == 0

    sweep_refunds()

    assert sweep()["edited"] == 1
    assert "refund credited" in message.text
    assert row_of(order).state == AnnouncementState.ENDED
    assert sweep()["edited"] == 0


def test_message_says_when_a_failed_order_was_credited_later(place: Place) -> None:
    order, senior = place.order(), make_operator(senior=True)
    show(order)
    for each in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        move(order, each, senior)
    show(order)
    (message,) = place.posted()
    assert "not refunded" in message.text

    credit_topup(
        fulfilment_id=order.pk,
        amount=order.amount,
        actor="dora",
        channel=Channel.ADMIN,
        note="late",
        booking_reference="all",
    )
    show(order)

    assert "refund credited" in message.text
    assert row_of(order).state == AnnouncementState.ENDED


def test_age_in_a_message_is_kept_current(place: Place) -> None:
    order = place.order()
    show(order)
    (message,) = place.posted()
    assert row_of(order).age_at == order.created_at + timedelta(minutes=10)
    assert "old at" not in message.text

    begun = _older(order, minutes=11)

    assert [sweep()["edited"], sweep()["edited"]] == [1, 0]
    assert "11 min old at" in message.text
    assert row_of(order).age_at == begun + timedelta(minutes=20)
    move(order, Move.COMPLETE)
    show(order)
    assert row_of(order).age_at is None


def test_age_does_not_replace_a_question(place: Place) -> None:
    order = place.order()
    show(order)
    note_question(fulfilment_id=order.pk, name="anna")
    _older(order, minutes=11)

    assert sweep()["edited"] == 0


def test_few_ages_are_edited_at_once(place: Place) -> None:
    orders = [place.order() for _ in range(3)]
    sweep()
    for order in orders:
        _older(order, minutes=11)

    assert [sweep()["edited"] for _ in range(3)] == [2, 1, 0]


def _older(order: Fulfilment, **time: float) -> datetime:
    """Moves an announced order into the past; returns the time at which it was ordered then."""
    passed = timedelta(**time)
    begun = order.created_at - passed
    Fulfilment.objects.filter(pk=order.pk).update(created_at=begun)
    Announcement.objects.filter(fulfilment=order).update(age_at=F("age_at") - passed)
    return begun


def test_sweep_makes_an_edit_whose_task_was_lost(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.COMPLETE)

    assert sweep() == {"edited": 1, "announced": 0, "repeated": 0}

    assert "Delivered" in place.posted()[0].text


def test_message_that_asks_gets_its_buttons_back(place: Place) -> None:
    order = place.order()
    show(order)
    note_question(fulfilment_id=order.pk, name="anna")
    assert sweep()["edited"] == 0

    later(minutes=2)

    assert sweep()["edited"] == 1
    assert sweep()["edited"] == 0
    assert row_of(order).restore_at is None


def test_requested_refresh_edits_the_message(place: Place) -> None:
    order = place.order()
    show(order)
    request_refresh(fulfilment_id=order.pk)

    show(order)

    assert place.api.count("editMessageText") == 1
    assert row_of(order).restore_at is None


def test_refresh_leaves_a_question_in_place(place: Place) -> None:
    order = place.order()
    show(order)
    note_question(fulfilment_id=order.pk, name="anna")

    request_refresh(fulfilment_id=order.pk)
    request_refresh(fulfilment_id=order.pk, by="berta")
    show(order)
    assert place.api.count("editMessageText") == 0

    request_refresh(fulfilment_id=order.pk, by="anna")
    show(order)
    assert place.api.count("editMessageText") == 1


def test_a_former_message_is_retired_beside_a_question(place: Place) -> None:
    show(place.order())  # its message stands for an older one of the next order
    order = place.order()
    show(order)
    former, _ = place.posted()
    note_question(fulfilment_id=order.pk, name="anna")

    note_stray(fulfilment_id=order.pk, chat_id=place.group.id, message_id=former.id)
    show(order)

    assert "another message shows it now" in place.posted()[0].text
    assert place.api.count("editMessageText") == 1  # the message with the question was not edited
    row = row_of(order)
    assert (row.former_message_id, row.busy_until) == (None, None)
    assert row.restore_at is not None


def test_a_question_goes_when_the_order_moves(place: Place) -> None:
    order = place.order()
    show(order)
    note_question(fulfilment_id=order.pk, name="anna")
    move(order, Move.CLAIM)

    show(order)

    assert "Claimed" in place.posted()[0].text
    assert row_of(order).restore_at is None


def test_a_message_asks_one_operator_at_a_time(place: Place) -> None:
    order = place.order()
    assert note_question(fulfilment_id=order.pk, name="anna") == ""  # the order has no message yet
    show(order)

    assert note_question(fulfilment_id=order.pk, name="anna") == ""
    assert note_question(fulfilment_id=order.pk, name="berta") == "anna"
    assert note_question(fulfilment_id=order.pk, name="anna") == ""
    later(minutes=2)
    assert note_question(fulfilment_id=order.pk, name="berta") == ""
    assert row_of(order).asks == "berta"


def test_question_on_an_ended_order_is_removed(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.COMPLETE)
    show(order)
    note_question(
        fulfilment_id=order.pk, name="anna"
    )  # the bot's question came after the last edit

    sweep()

    assert row_of(order).state == AnnouncementState.ENDED
    assert place.api.count("editMessageText") == 2
