"""Odd requests by Hypothesis. `make odd-requests` sends more of them."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from accounts.views import PingViewSet
from core.api.views import ok
from labs.odd_requests.making import BASE, FRESH, Odd
from labs.odd_requests.rules import well_formed
from labs.odd_requests.sending import Judge, try_many
from labs.odd_requests.world import make_world
from tests.answers import served_document
from tests.concurrency.racing import weakened_sql

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = int(os.environ.get("ODD_REQUESTS", "1500"))
FEW = 1000
# Hypothesis chooses the requests. Rarely, too few of a round are purchases that are sent again.
ROUNDS = 3
OUTCOMES = ("200", "bought", "validation_failed", "message", "idempotency_key_reused")


def test_every_answer_is_one_that_the_contract_allows() -> None:
    world, counted = make_world(codes=ROUNDS * COUNT), Counter[str]()
    for _ in range(ROUNDS):
        counted += try_many(world, count=COUNT)
        if all(counted[outcome] > COUNT / 200 for outcome in OUTCOMES):
            break

    print(dict(counted))  # noqa: T201
    for outcome in OUTCOMES:
        assert counted[outcome] > COUNT / 200, counted


def finds(problem: str) -> None:
    """Asserts that FEW requests find this problem."""
    with pytest.raises(AssertionError, match=problem):
        try_many(make_world(codes=FEW), count=FEW, control=True)


@contextmanager
def answering(body: dict[str, Any]) -> Iterator[None]:
    served_document()  # is cached, as the views are without the patch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PingViewSet, "retrieve", lambda self, request: ok(body))
        yield


def test_control_an_undocumented_field_is_found() -> None:
    more = {"client": "x", "server_time": "2026-01-01T00:00:00Z", "rate_limit_per_minute": 1}
    with answering({**more, "more": 1}):
        finds("more")


def test_control_a_crash_is_found() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orders.views.is_topup", lambda body: 1 / 0)
        finds("500")


def test_control_a_change_by_a_refused_request_is_found() -> None:
    """The release of a refused key takes a cent from every wallet."""
    steal = (
        "BEGIN\n",
        "BEGIN\n    INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount,"
        " balance_after, actor, booking_reference) SELECT account_id, 'adjustment',"
        " 'corrections', 0.01, 0, 'thief', gen_random_uuid() FROM wallets_wallet;\n",
    )
    with weakened_sql("idempotency/sql/release.sql", steal):
        finds("balances moved")


def test_control_a_second_purchase_with_one_key_is_found() -> None:
    world = make_world(codes=10)
    body = json.dumps({"product_id": world.products[0], "quantity": 1}).encode()
    headers = {"Authorization": f"Bearer {world.buyers[0]}", "Idempotency-Key": FRESH}
    headers["Content-Type"] = "application/json"
    odd = Odd("POST", f"{BASE}/orders", frozenset({"201"}), body=body, again=("the same",))
    odd = replace(odd, headers=tuple(headers.items()))
    Judge(world).try_one(odd)
    forget = "DELETE FROM idempotency_idempotencyrecord;"
    with (
        weakened_sql("idempotency/sql/store_response.sql", ("BEGIN\n", f"BEGIN\n    {forget}\n")),
        pytest.raises(AssertionError, match="the same: no replay"),
    ):
        Judge(world).try_one(odd)


def test_control_a_purchase_of_a_malformed_body_is_found() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orders.views.read_purchase", lambda body, **_: dict(body))
        finds("not one of|500")


TOPUP = {"delivery_type": "top_up", "system_product_id": 1, "player_id": "0_-"}


@pytest.mark.parametrize(
    ("body", "good"),
    [
        ({"product_id": 1, "quantity": 1}, True),
        ({"product_id": 1, "quantity": True}, False),
        ({"product_id": 1, "quantity": 101}, False),
        ({"product_id": 1, "quantity": 1.0}, False),
        ({"product_id": 1, "quantity": 1, "variation_id": None}, True),
        ({"product_id": 1, "quantity": 1, "player_id": "1"}, False),
        ({"product_id": 1, "merchant_reference": "a", "quantity": 1}, False),
        ({"merchant_reference": "é 1/#", "quantity": 1}, True),
        ({"merchant_reference": "-a", "quantity": 1}, False),
        (TOPUP, True),
        ({**TOPUP, "player_id": "0\n"}, False),
        ({**TOPUP, "quantity": 2}, False),
        ({**TOPUP, "fields": {"": 1}}, False),
        ({**TOPUP, "fields": {"1": None}}, True),
    ],
)
def test_the_rules_of_a_body(body: dict[str, Any], good: bool) -> None:
    assert well_formed(body) is good
