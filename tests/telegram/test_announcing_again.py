"""Orders that nobody claims are announced again."""

from datetime import timedelta

import pytest
from django.db import connection

from tests.factories import make_operator
from tests.telegram.announcing import (
    Place,
    later,
    move,
    row_of,
    show,
    sweep,
)
from topups.fulfilment.transitions import Move

pytestmark = pytest.mark.django_db


def test_unclaimed_order_is_repeated_at_most_as_often_as_set(place: Place) -> None:
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


def test_claimed_order_is_not_repeated(place: Place) -> None:
    order = place.order()
    show(order)
    move(order, Move.CLAIM)
    _age(minutes=60)

    sweep()

    assert len(place.posted()) == 1


def test_release_starts_the_wait_again(place: Place) -> None:
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
    """Makes the orders, their events and all times of announcements older."""
    later(**time)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE topups_fulfilmentevent SET created_at = created_at - %s::interval",
            [f"{timedelta(**time).total_seconds()} s"],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")
