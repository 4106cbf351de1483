"""After an account has left, its old cell says nothing that is untrue in the new one: a program may
still reach it, with a key that has bought there (accounts/moving.py)."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.models import Account
from orders.models import Order
from tests.cells.accounts import asking, assert_healthy, leave
from tests.cells.two_cells import PRODUCT, TOPUP, VARIATION, Cell
from tests.commands import run
from tests.concurrency.racing import execute
from tests.factories import Merchant, make_merchant

pytestmark = pytest.mark.django_db(transaction=True)

VOUCHER = {"product_id": PRODUCT, "quantity": 1}
TOP_UP = {"delivery_type": "top_up", "system_product_id": TOPUP, "player_id": "1"}
PRICE = "UPDATE catalogue_shelf SET price = {}"
STEP = "UPDATE catalogue_shelf SET quantity_step = {}"
ACTIVE = "UPDATE catalogue_product SET active = {}"
TOP_UP_ACTIVE = "UPDATE topups_topupproduct SET active = {}"
# Each refusal: the catalogue that leads to it, the catalogue afterwards, and the request.
REFUSALS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "insufficient_stock": ("SELECT 1", "SELECT 1", {**VOUCHER, "quantity": 100}),
    "insufficient_balance": (PRICE.format(1000), PRICE.format(1), VOUCHER),
    "price_unavailable": (PRICE.format("NULL"), PRICE.format(1), VOUCHER),
    "quantity_step": (STEP.format(2), STEP.format(1), VOUCHER),
    "product_inactive": (ACTIVE.format("false"), ACTIVE.format("true"), VOUCHER),
    "product_reference_not_found": (
        "SELECT 1",
        "SELECT 1",
        {"merchant_reference": "linked-there", "quantity": 1},
    ),
    "product_reference_ambiguous": (
        "SELECT 1",
        "SELECT 1",
        {"merchant_reference": "my-card", "variation_id": VARIATION, "quantity": 1},
    ),
    "variation_mismatch": ("SELECT 1", "SELECT 1", {**VOUCHER, "variation_id": 7}),
    "validation_failed": ("SELECT 1", "SELECT 1", {**VOUCHER, "product_id": 7}),
    "product_inactive of a top-up": (
        TOP_UP_ACTIVE.format("false"),
        TOP_UP_ACTIVE.format("true"),
        TOP_UP,
    ),
    "validation_failed of a top-up": ("SELECT 1", "SELECT 1", {**TOP_UP, "fields": {"7": "x"}}),
    "validation_failed of no top-up": (
        "SELECT 1",
        "SELECT 1",
        {**TOP_UP, "system_product_id": 7},
    ),
}


def refused(merchant: Merchant, occasion: str) -> dict[str, str]:
    """How each purchase was refused. `occasion` is in the idempotency keys."""
    answers = {}
    for refusal, (before, after, body) in REFUSALS.items():
        execute(before)
        error = merchant.buy(f"{occasion} {refusal}", **body).json()["error"]
        answers[refusal] = error.get("reason") or error["code"]
        execute(after)
    return answers


def test_no_purchase_is_refused_as_if_it_had_not_been_bought(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, _ = cells
    with asking(a, merchant):
        stays = make_merchant()
        assert refused(merchant, "before") == {name: name.split()[0] for name in REFUSALS}
    leave(a, merchant, tmp_path / "m1")

    with asking(a, merchant):
        for occasion in ("after", "again"):
            assert refused(merchant, occasion) == dict.fromkeys(REFUSALS, "server_error")
        # The key stays in progress, as after each server_error.
        key, body = "after insufficient_stock", REFUSALS["insufficient_stock"][2]
        assert merchant.buy(key, **body).json()["error"]["code"] == "request_in_progress"
        # Others are refused as ever.
        reason = stays.buy(**body).json()["error"]["reason"]
        assert reason == "insufficient_stock"
    assert_healthy(a)


def test_an_unknown_order_may_be_in_the_new_cell(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, _ = cells
    leave(a, merchant, tmp_path / "m1")
    with asking(a, merchant):
        # A plain client: the checked one compares with the document, which has no 500 of a read.
        merchant.http = Client()
        known = Order.objects.filter(client=merchant.client).earliest("pk").reference
        assert merchant.get(f"/orders/{known}").status_code == 200
        unknown = merchant.get("/orders/01ARZ3NDEKTSV4RRFFQ69G5FAV")
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (500, "server_error")


def test_a_switched_off_account_is_not_refused_after_it_left(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    first, second = tmp_path / "first", tmp_path / "second"
    leave(a, merchant, first)
    with asking(a, merchant):
        account = merchant.client.account_id
        other = make_merchant()
        for one in (account, other.client.account_id):
            run("set_account", one, "--disable")
        merchant.http = Client()
        for path in ("/ping", "/balance", "/orders", "/products"):
            answer = merchant.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "server_error")
        bought = merchant.buy("plain", product_id=PRODUCT, quantity=3)
        assert (bought.status_code, bought.json()["error"]["code"]) == (500, "server_error")
        assert other.get("/ping").json()["error"]["code"] == "client_disabled"

    # It arrives switched on, as it left.
    leave(a, merchant, second)
    assert first.read_bytes() == second.read_bytes()
    arrived = b.run("receive_account", second)["account"]
    with asking(b, merchant):
        assert Account.objects.get(pk=arrived).enabled
        assert merchant.get("/balance").status_code == 200
    assert_healthy(a, b)
