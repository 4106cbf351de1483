"""From a purchase over HTTP to its end, with all work done in the operators' chat."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_field,
    make_topup_product,
)
from tests.live import LiveServer, live_server
from tests.tasks.running import wait_until
from tests.telegram.running import Desk, Telegram

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def web(telegram: Telegram) -> Iterator[LiveServer]:
    with live_server(telegram.environment, workers=1) as server:
        yield server


@pytest.fixture
def merchant(web: LiveServer, transactional_db: None) -> Merchant:
    return Merchant(make_client(make_account()), http=web.http)


def read(merchant: Merchant, reference: str) -> dict[str, object]:
    answer = merchant.get(f"/orders/{reference}")
    data: dict[str, object] = answer.json()["data"]
    return data


def balance(merchant: Merchant) -> Decimal:
    return Decimal(str(merchant.get("/balance").json()["data"]["balance"]))


def _part(text: str, offset: int, length: int) -> str:
    """The part of a text that Telegram means: it counts UTF-16 units."""
    return text.encode("utf-16-le")[2 * offset : 2 * (offset + length)].decode("utf-16-le")


def test_order_is_delivered(desk: Desk, merchant: Merchant) -> None:
    anna, _ = desk.staff("anna")
    product = make_topup_product(name="Gems <60> & more", announce=True)
    server = make_field(product, "dropdown", label="Server", options=["eu", "us"])
    reference = buy_topup(merchant, product, player_id="0012345", fields={str(server.number): "eu"})

    message = desk.announcement(reference)
    assert "Gems <60> & more" in message.text
    assert "Server: eu" in message.text
    assert message.buttons == ["Claim"]
    codes = [one for one in message.entities if one["type"] == "code"]
    assert "0012345" in [_part(message.text, one["offset"], one["length"]) for one in codes]

    assert desk.press(anna, message, "Claim").text == "Claimed. The order is assigned to you."
    desk.shows(message, "Claimed by anna")
    assert read(merchant, reference)["fulfilment_status"] == "processing"
    asked = desk.press(anna, message, "Delivered")
    assert asked.text == "Mark as delivered? Please confirm."
    assert read(merchant, reference)["fulfilment_status"] == "processing"
    told = desk.press(anna, message, "anna: mark as delivered?")
    assert told.text.startswith("Marked as delivered")

    desk.shows(message, "Delivered by anna")
    assert message.buttons == []
    order = read(merchant, reference)
    assert (order["status"], order["fulfilment_status"]) == ("completed", "completed")
    assert (order["refunded"], order["failure_reason"]) == (False, None)
    assert balance(merchant) == Decimal("95.01")


@pytest.mark.parametrize(
    ("label", "asked", "reason"),
    [
        ("Wrong ID: reject, refund", "wrong ID: reject and refund", "wrong_id"),
        ("No stock: reject, refund", "no stock: reject and refund", "no_stock"),
        ("Reject, refund", "reject and refund", "fulfilment_failed"),
    ],
)
def test_order_is_rejected_and_refunded(
    desk: Desk, merchant: Merchant, label: str, asked: str, reason: str
) -> None:
    anna, _ = desk.staff("anna")
    reference = buy_topup(merchant, make_topup_product(announce=True))
    assert balance(merchant) == Decimal("95.01")
    message = desk.announcement(reference)

    desk.press(anna, message, "Claim")
    desk.press(anna, message, label)
    assert "Rejected" in desk.press(anna, message, f"anna: {asked} 4.99 USD?").text

    desk.shows(message, "by anna")
    wait_until(lambda: read(merchant, reference)["refunded"], "the refund")
    desk.shows(message, "refund credited) by anna")
    order = read(merchant, reference)
    assert (order["status"], order["failure_reason"]) == ("failed", reason)
    assert balance(merchant) == Decimal("100.00")
