"""A press moves the order only in the version its message showed."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any
from uuid import uuid4

import pytest

from operators.telegram.messages.buttons import Action, Press, encode
from operators.telegram.models import Announcement, AnnouncementState, TelegramLink
from operators.telegram.updates.presses import Query, Verdict, carry_out
from tests.concurrency.racing import start
from tests.factories import buy_topup, make_merchant, make_operator, make_topup_product, move_now
from topups.fulfilment import fulfilments
from topups.fulfilment.fulfilments import Operator, check_move
from topups.fulfilment.transitions import Move
from topups.fulfilment.versions import last_event
from topups.models import Channel, Fulfilment

pytestmark = pytest.mark.django_db(transaction=True)

CHAT = -1001
GRACE = 1.0  # seconds; with the row lock, the other move waits longer than this


def order() -> Fulfilment:
    reference = buy_topup(make_merchant(), make_topup_product(announce=True))
    return Fulfilment.objects.get(order_reference=reference)


def linked(number: int, **fields: Any) -> Operator:
    operator = make_operator(channel=Channel.TELEGRAM, **fields)
    TelegramLink.objects.create(user=operator.user, telegram_user_id=number)
    return operator


def press(person: int, action: Action, fulfilment: Fulfilment, message_id: int = 1) -> Verdict:
    version = last_event(fulfilment).pk
    data = encode(Press(action, fulfilment.pk, version, sure=True))
    verdict = carry_out(Query(uuid4().hex, person, data, CHAT, message_id))
    assert verdict is not None
    return verdict


def test_order_released_during_a_press_is_not_delivered_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anna, senior = linked(1), linked(2, senior=True)
    fulfilment = order()
    reference = fulfilment.order_reference
    move_now(reference=reference, move=Move.CLAIM, operator=anna)
    released: list[Future[Any]] = []

    def release() -> None:
        move_now(reference=reference, move=Move.RELEASE, operator=senior)

    with ThreadPoolExecutor(1) as pool:

        def check_and_pause(**arguments: Any) -> None:
            """Another operator moves the order after the version was checked."""
            check_move(**arguments)
            if arguments["move"] == Move.COMPLETE:
                released.append(start(pool, release))
                wait(released, GRACE)

        monkeypatch.setattr(fulfilments, "check_move", check_and_pause)
        press(1, Action.DONE, fulfilment)

    events = fulfilment.events.values_list("from_status", "move")
    assert ("pending", "complete") not in list(events)


def announced(fulfilment: Fulfilment, message_id: int, **fields: Any) -> Announcement:
    shown = last_event(fulfilment)
    return Announcement.objects.create(
        fulfilment=fulfilment,
        state=AnnouncementState.ANNOUNCED,
        chat_id=CHAT,
        message_id=message_id,
        announced_at=shown.created_at,
        message_version=shown.pk,
    )


def test_press_on_another_orders_message_does_not_adopt_it() -> None:
    """A modified Telegram client can send such a press."""
    linked(1)
    one, other = order(), order()
    row = announced(one, 11)
    announced(other, 12)

    press(1, Action.CLAIM, one, message_id=12)

    row.refresh_from_db()
    assert (row.message_id, row.former_message_id) == (11, None)


def test_press_on_another_orders_message_still_moves_its_order() -> None:
    linked(1)
    one, other = order(), order()
    Announcement.objects.create(fulfilment=one, chat_id=CHAT, lost_answers=1)
    announced(other, 12)

    verdict = press(1, Action.CLAIM, one, message_id=12)

    assert verdict.text == "Claimed. The order is assigned to you."
    assert Announcement.objects.get(fulfilment=one).message_id is None
