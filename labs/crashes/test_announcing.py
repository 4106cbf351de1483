"""Announcing with real workers and a real broker, which may be killed or hang."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from core import queue
from operators.telegram.models import AnnouncementState
from tests.factories import make_merchant, make_topup_product
from tests.neighbour import ours
from tests.tasks.running import Broker, Crew, running_crew, wait_until
from tests.telegram.announcing import Place, later, move, row_of
from tests.telegram.fake_bot_api.faults import HANG
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def crew(place: Place, broker: Broker) -> Iterator[Crew]:
    telegram = {"TELEGRAM_BOT_TOKEN": place.api.token, "TELEGRAM_API_URL": place.api.url}
    with running_crew(broker.url, **telegram) as crew:
        yield crew


def test_purchase_is_announced_and_move_edits_the_message(place: Place, crew: Crew) -> None:
    crew.worker()
    order = place.order()
    wait_until(place.posted, "the order is announced")
    (message,) = place.posted()

    move(order, Move.COMPLETE)
    wait_until(lambda: "Delivered" in message.text, "the message says that it is delivered")

    assert place.posted() == [message]
    assert place.api.token not in crew.logs


def test_scheduled_sweep_announces_orders_whose_task_was_lost(place: Place, crew: Crew) -> None:
    place.settings.TELEGRAM_BOT_TOKEN = ""  # in this process, so that it queues no task
    place.order()

    crew.worker()
    crew.beat("sweep-announcements")

    wait_until(place.posted, "the order is announced")


def test_worker_killed_after_posting_leads_to_a_second_message_that_says_so(
    place: Place, crew: Crew, broker: Broker
) -> None:
    place.api.fault("sendMessage", HANG(600, after=True))
    worker = crew.worker()
    order = place.order()
    wait_until(place.posted, "the order is posted")
    worker.kill()
    assert row_of(order).state == AnnouncementState.SENDING

    crew.worker()
    crew.beat("sweep-announcements")
    time.sleep(3)  # nobody posts until the lease ends
    assert len(place.posted()) == 1
    later(minutes=2)

    wait_until(lambda: len(place.posted()) == 2, "it is posted again")
    assert "may be in the chat twice" in place.posted()[1].text


def test_purchase_does_not_wait_for_a_silent_broker(
    place: Place, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A purchase that did wait would take as long as a time-out, which is long here."""
    monkeypatch.setattr(queue, "TIMEOUT_SECONDS", 20.0)
    monkeypatch.setattr(queue, "TIMEOUTS", dict.fromkeys(queue.TIMEOUTS, 20.0))
    merchant, product = make_merchant(), make_topup_product(announce=True)
    body: dict[str, Any] = {
        "delivery_type": "top_up",
        "system_product_id": product.pk,
        "player_id": "1",
    }
    assert merchant.buy(**body).status_code == 201
    broker.freeze()

    began = time.monotonic()
    answers = [merchant.buy(**body).status_code for _ in range(3)]
    taken = time.monotonic() - began

    assert answers == [201] * 3
    assert taken < queue.TIMEOUT_SECONDS
    assert ours(Fulfilment).count() == 4
    broker.thaw()
