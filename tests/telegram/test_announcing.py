"""Orders reach the operators' chat: which, where, when, and once."""

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from operators.models import Announcement, AnnouncementRoute, AnnouncementState, PlatformSettings
from operators.telegram.announcement_requests import note_question, request_refresh
from operators.telegram.platform_settings import is_quiet
from tests.factories import make_category, make_operator, make_topup_product
from tests.telegram.announcing import (
    Place,
    later,
    move,
    operators_chat,
    row_of,
    show,
    sweep,
)
from topups.refunds import sweep_refunds
from topups.transitions import Move

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(settings: Any) -> Iterator[Place]:
    with operators_chat(settings) as place:
        yield place


def test_an_order_is_announced_once(place: Place) -> None:
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


def test_a_sweep_finds_what_no_task_told_of(place: Place) -> None:
    orders = [place.order() for _ in range(3)]

    assert sweep() == {"edited": 0, "announced": 3, "repeated": 0}

    for order, message in zip(orders, place.posted(), strict=True):  # oldest first
        assert order.order_reference in message.text


@pytest.mark.parametrize("reason", ["not marked", "off", "no chat", "no token"])
def test_nothing_is_sent_that_is_not_to_be(place: Place, reason: str) -> None:
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
    assert not Announcement.objects.exists()


def test_forwarding_can_be_switched_on_at_any_time(place: Place) -> None:
    place.set(announcing=False)
    place.order()
    sweep()
    place.set(announcing=True)

    sweep()

    assert len(place.posted()) == 1


def test_what_is_announced_stays_true_when_forwarding_is_switched_off(place: Place) -> None:
    order = place.order()
    show(order)
    place.set(announcing=False)
    move(order, Move.COMPLETE)

    show(order)

    (message,) = place.posted()
    assert "Delivered" in message.text


def test_routes_lead_elsewhere_the_packages_own_first(place: Place) -> None:
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


def test_a_route_is_enough_without_a_default_chat(place: Place) -> None:
    place.set(chat_id=None)
    gems = make_topup_product(announce=True)
    AnnouncementRoute.objects.create(product=gems, chat_id=place.group.id)
    place.order()

    place.order(product=gems)

    assert sweep()["announced"] == 1


def test_what_the_desk_took_first_is_announced_only_when_it_comes_back(place: Place) -> None:
    order, operator = place.order(), make_operator()
    move(order, Move.CLAIM, operator)
    show(order)
    sweep()
    assert place.posted() == []

    move(order, Move.RELEASE, operator)
    show(order)

    (message,) = place.posted()
    assert "released by" in message.text


def test_the_message_follows_the_order_wherever_it_is_moved(place: Place) -> None:
    order, senior = place.order(), make_operator(senior=True)
    show(order)
    seen = []
    for each in (Move.CLAIM, Move.RELEASE, Move.CLAIM, Move.REVIEW, Move.REJECT):
        move(order, each, senior)
        show(order)
        (message,) = place.posted()
        seen.append((message.text.rpartition("\n")[2].partition(" by ")[0], len(message.buttons)))

    assert seen == [
        ("🔵 Claimed", 6),
        ("🟡 Waiting: released", 1),
        ("🔵 Claimed", 6),
        ("🟠 In review: sent there", 5),
        ("❌ Rejected (failed)", 0),
    ]
    assert senior.user.username in message.text
    assert row_of(order).state == AnnouncementState.ENDED


def test_an_order_that_has_ended_costs_no_more_calls(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.REJECT)
    show(order)
    calls = len(place.api.calls)

    sweep_refunds()
    show(order)
    sweep()

    assert len(place.api.calls) == calls == 2


def test_a_lost_task_of_an_edit_is_found(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.COMPLETE)

    assert sweep() == {"edited": 1, "announced": 0, "repeated": 0}

    assert "Delivered" in place.posted()[0].text


def test_a_message_that_asks_gets_its_buttons_back(place: Place) -> None:
    order = place.order()
    show(order)
    note_question(fulfilment_id=order.pk)
    assert sweep()["edited"] == 0

    later(minutes=2)

    assert sweep()["edited"] == 1
    assert sweep()["edited"] == 0
    assert row_of(order).restore_at is None


def test_a_message_that_may_be_out_of_date_is_edited_at_once(place: Place) -> None:
    order = place.order()
    show(order)
    request_refresh(fulfilment_id=order.pk)

    show(order)

    assert place.api.count("editMessageText") == 1
    assert row_of(order).restore_at is None


def test_a_question_on_an_order_that_has_ended_is_taken_away(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.COMPLETE)
    show(order)
    note_question(fulfilment_id=order.pk)  # the bot's edit came after ours

    sweep()

    assert row_of(order).state == AnnouncementState.ENDED
    assert place.api.count("editMessageText") == 2


# Again, while nobody claims.


def test_an_unclaimed_order_is_announced_again_so_often_and_no_more(place: Place) -> None:
    place.set(repeat_minutes=15, repeat_times=2)
    order = place.order()
    show(order)
    for _ in range(4):
        assert sweep()["repeated"] == 0
        _age(minutes=15)
        sweep()

    first, second, third = place.posted()
    assert "Announced again" in third.text
    assert third.reply_to is second
    assert [len(each.buttons) for each in (first, second, third)] == [0, 0, 1]
    assert "another message" in first.text
    assert row_of(order).repeats == 2


def test_one_that_is_claimed_is_not_announced_again(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.CLAIM)
    _age(minutes=60)

    sweep()

    assert len(place.posted()) == 1


def test_one_that_came_back_is_waited_for_as_long(place: Place) -> None:
    order, operator = place.order(), make_operator()
    show(order)
    _age(minutes=60)
    move(order, Move.CLAIM, operator)
    move(order, Move.RELEASE, operator)

    assert sweep() == {"edited": 1, "announced": 0, "repeated": 0}


def test_repeating_can_be_switched_off(place: Place) -> None:
    place.set(repeat_minutes=None)
    show(place.order())
    _age(days=2)

    assert sweep()["repeated"] == 0


def _age(**time: float) -> None:
    """The orders themselves wait for so much longer too; a history is kept as it is."""

    later(**time)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE topups_fulfilmentevent SET created_at = created_at - %s::interval",
            [f"{timedelta(**time).total_seconds()} s"],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")


# Quiet hours.


@pytest.mark.parametrize(
    ("begin", "end", "zone", "quiet"),
    [
        (None, None, "UTC", False),
        (time(22), time(6), "UTC", False),
        (time(11), time(13), "UTC", True),
        (time(12), time(13), "UTC", True),
        (time(11), time(12), "UTC", False),
        (time(22), time(12, 30), "UTC", True),
        (time(12), time(11), "UTC", True),
        (time(21), time(22), "Asia/Tokyo", True),
        (time(11), time(13), "Asia/Tokyo", False),
        (time(12), time(14), "Europe/Berlin", True),  # 13:00 in winter
    ],
)
def test_quiet_hours_are_of_the_operators_clock(
    begin: time | None, end: time | None, zone: str, quiet: bool
) -> None:
    settings = PlatformSettings(quiet_from=begin, quiet_until=end, time_zone=zone)

    assert is_quiet(settings, datetime(2026, 1, 5, 12, 0, tzinfo=UTC)) == quiet


def test_orders_of_the_quiet_hours_wait_and_then_come_oldest_first(place: Place) -> None:
    place.set(quiet_from=time(0), quiet_until=time(23, 59, 59, 999999))
    orders = [place.order() for _ in range(3)]
    for order in reversed(orders):
        show(order)
    assert sweep()["announced"] == 0

    place.set(quiet_from=None, quiet_until=None)
    show(orders[2])

    for order, message in zip(orders, place.posted(), strict=True):
        assert order.order_reference in message.text


def test_messages_stay_true_in_quiet_hours(place: Place) -> None:
    order = place.order()
    show(order)
    place.set(quiet_from=time(0), quiet_until=time(23, 59, 59, 999999))
    move(order, Move.COMPLETE)

    sweep()

    assert "Delivered" in place.posted()[0].text


# As fast as Telegram lets us.


def test_a_burst_is_spread_over_minutes_oldest_first(place: Place) -> None:
    place.settings.TELEGRAM_MESSAGES_PER_MINUTE = 2
    orders = [place.order() for _ in range(5)]

    counts = []
    for _ in range(4):
        counts.append(sweep()["announced"])
        assert sweep()["announced"] == 0
        later(minutes=1)

    assert counts == [2, 2, 1, 0]
    for order, message in zip(orders, place.posted(), strict=True):
        assert order.order_reference in message.text


# What the database refuses.


@pytest.mark.parametrize(
    "fields",
    [
        {"pk": 2},
        {"topic_id": 5},
        {"chat_id": -1, "topic_id": 1},
        {"quiet_from": time(1)},
        {"quiet_until": time(1)},
        {"quiet_from": time(1), "quiet_until": time(1)},
        {"repeat_minutes": 0},
    ],
)
def test_the_database_refuses_settings_that_mean_nothing(db: None, fields: Any) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        PlatformSettings.objects.create(**fields)


def test_the_database_refuses_routes_that_mean_nothing(db: None) -> None:
    product, category = make_topup_product(), make_category()
    AnnouncementRoute.objects.create(product=product, chat_id=-1)
    for fields in (
        {},
        {"product": make_topup_product(), "category": category},
        {"product": product},
        {"category": category, "topic_id": 1},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            AnnouncementRoute.objects.create(chat_id=-1, **fields)


def test_the_database_refuses_two_rows_of_an_order_and_messages_of_none(place: Place) -> None:
    order, other = place.order(), place.order()
    show(order)
    row = row_of(order)
    for change in (
        {"state": "announced", "message_id": None},
        {"state": "sending", "busy_until": None},
        {"state": "nonsense"},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            Announcement.objects.filter(pk=row.pk).update(**change)
    with pytest.raises(IntegrityError), transaction.atomic():
        Announcement.objects.create(fulfilment=order)
    with pytest.raises(IntegrityError), transaction.atomic():
        Announcement.objects.filter(fulfilment=other).update(
            chat_id=row.chat_id, message_id=row.message_id
        )
