"""Nothing is announced in the quiet hours; orders wait, and edits go on."""

from datetime import UTC, datetime, time

import pytest

from operators.telegram.chats import is_quiet
from operators.telegram.models import PlatformSettings
from tests.telegram.announcing import (
    Place,
    move,
    show,
    sweep,
)
from topups.fulfilment.transitions import Move

pytestmark = pytest.mark.django_db


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
def test_quiet_hours_follow_the_operators_time_zone(
    begin: time | None, end: time | None, zone: str, quiet: bool
) -> None:
    settings = PlatformSettings(quiet_from=begin, quiet_until=end, time_zone=zone)

    assert is_quiet(settings, datetime(2026, 1, 5, 12, 0, tzinfo=UTC)) == quiet


def test_orders_of_the_quiet_hours_are_announced_afterwards_oldest_first(place: Place) -> None:
    place.set(quiet_from=time(0), quiet_until=time(23, 59, 59, 999999))
    orders = [place.order() for _ in range(3)]
    for order in reversed(orders):
        show(order)
    assert sweep()["announced"] == 0

    place.set(quiet_from=None, quiet_until=None)
    show(orders[2])

    for order, message in zip(orders, place.posted(), strict=True):
        assert order.order_reference in message.text


def test_messages_are_edited_in_the_quiet_hours(place: Place) -> None:
    order = place.order()
    show(order)
    place.set(quiet_from=time(0), quiet_until=time(23, 59, 59, 999999))
    move(order, Move.COMPLETE)

    sweep()

    assert "Delivered" in place.posted()[0].text
