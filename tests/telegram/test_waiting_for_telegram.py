"""When Telegram limits a chat, only that chat is paused."""

import pytest
from django.urls import reverse

from operators.telegram.models import AnnouncementRoute
from tests.factories import make_topup_product
from tests.operators.back_office import signed_in
from tests.telegram.announcing import (
    DOUBT,
    Place,
    later,
    move,
    pause_of,
    show,
    sweep,
)
from tests.telegram.fake_bot_api.faults import TOO_MANY
from topups.fulfilment.transitions import Move

pytestmark = pytest.mark.django_db


def test_only_the_chat_that_was_limited_is_paused(place: Place) -> None:
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


def test_limited_edit_is_made_later(place: Place) -> None:
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


def test_settings_page_shows_chats_with_errors(place: Place) -> None:
    place.api.fault("sendMessage", TOO_MANY(37))
    show(place.order())

    page = signed_in().get(reverse("admin:telegram_platformsettings_change", args=[1]))

    shown = page.content.decode()
    assert str(place.group.id) in shown
    assert "asks to wait for 37 s" in shown


def test_burst_is_spread_over_minutes_oldest_first(place: Place) -> None:
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
