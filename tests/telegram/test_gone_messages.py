"""Messages that were deleted, and groups that became supergroups."""

import pytest

from audit.models import AuditAction, AuditEntry
from operators.telegram.announcements import request_refresh
from operators.telegram.models import AnnouncementRoute, AnnouncementState, PlatformSettings
from tests.factories import make_topup_product
from tests.telegram.announcing import (
    DOUBT,
    Place,
    given_up,
    move,
    row_of,
    show,
    sweep,
)
from topups.fulfilment.transitions import Move

pytestmark = pytest.mark.django_db


def test_supergroup_takes_the_place_of_its_group(place: Place) -> None:
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


def test_deleted_message_of_a_waiting_order_is_posted_again(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    request_refresh(fulfilment_id=order.pk)

    sweep()
    sweep()

    (message,) = place.posted()
    assert DOUBT not in message.text
    assert row_of(order).message_id == message.id


def test_deleted_message_of_a_claimed_order_is_posted_again(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    move(order, Move.CLAIM)

    sweep()
    sweep()

    (message,) = place.posted()
    assert "Claimed" in message.text
    assert "Release" in message.buttons


def test_deleted_message_of_an_ended_order_is_not_posted_again(place: Place) -> None:
    order = place.order()
    show(order)
    place.api.delete(place.posted()[0])
    move(order, Move.COMPLETE)

    sweep()
    sweep()

    assert place.posted() == []
    assert row_of(order).state == AnnouncementState.ENDED
    assert given_up() == []


def test_edit_without_a_change_is_no_error(place: Place) -> None:
    order = place.order()
    show(order)
    for _ in range(2):  # the second edit is in the same minute, so it changes nothing
        request_refresh(fulfilment_id=order.pk)
        sweep()

    row = row_of(order)
    assert (row.state, row.restore_at, row.last_error) == ("announced", None, "")
