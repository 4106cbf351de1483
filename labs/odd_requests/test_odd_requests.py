"""A few thousand odd requests. `make odd-requests` sends a million."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accounts.views import PingViewSet
from core.api.views import ok
from labs.odd_requests.rules import well_formed
from labs.odd_requests.run import send_all
from labs.odd_requests.world import make_world
from tests.concurrency.racing import execute, weakened_sql
from tests.live import LiveServer

pytestmark = pytest.mark.django_db(transaction=True)

COUNT = int(os.environ.get("ODD_REQUESTS", "3000"))
SEED = int(os.environ.get("ODD_SEED", str(random.randrange(10**6))))
FEW = 300


def problems(live: LiveServer, *, count: int = FEW, seed: int = 1) -> list[str]:
    return send_all(make_world(codes=count), count=count, seed=seed, server=live).problems


def test_every_answer_is_one_that_the_contract_allows(live: LiveServer) -> None:
    print(f"ODD_SEED={SEED} ODD_REQUESTS={COUNT}")  # noqa: T201  repeats this run
    result = send_all(make_world(codes=COUNT), count=COUNT, seed=SEED, server=live)

    assert result.problems == []
    assert result.sent == COUNT
    assert result.over_http > COUNT / 100
    for outcome in ("200", "bought", "validation_failed", "message", "idempotency_key_reused"):
        assert result.counted[outcome] > COUNT / 200, result.counted
    print(dict(result.counted))  # noqa: T201


def test_the_same_seed_sends_the_same_requests(live: LiveServer) -> None:
    # Some requests name fixed numbers, which must be the ids of no product.
    for table in ("catalogue_product", "topups_topupproduct"):
        execute(f"SELECT setval('{table}_id_seq', 7000000)")
    first, second = (
        send_all(make_world(codes=FEW), count=FEW, seed=7, server=live) for _ in range(2)
    )
    assert first.counted == second.counted


@contextmanager
def answering(body: dict[str, Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PingViewSet, "retrieve", lambda self, request: ok(body))
        yield


def test_control_an_undocumented_field_is_found(live: LiveServer) -> None:
    more = {"client": "x", "server_time": "2026-01-01T00:00:00Z", "rate_limit_per_minute": 1}
    with answering({**more, "more": 1}):
        assert any("more" in each for each in problems(live))


def test_control_a_crash_is_found(live: LiveServer) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orders.views.is_topup", lambda body: 1 / 0)
        assert any("500" in each for each in problems(live))


def test_control_a_change_by_a_refused_request_is_found(live: LiveServer) -> None:
    """The release of a refused key takes a cent from every wallet."""
    steal = (
        "BEGIN\n",
        "BEGIN\n    INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount,"
        " balance_after, actor, booking_reference) SELECT account_id, 'adjustment',"
        " 'corrections', 0.01, 0, 'thief', gen_random_uuid() FROM wallets_wallet;\n",
    )
    with weakened_sql("idempotency/sql/release.sql", steal):
        assert any("balances moved" in each for each in problems(live))


def test_control_a_second_purchase_with_one_key_is_found(live: LiveServer) -> None:
    forget = ("BEGIN\n", "BEGIN\n    DELETE FROM idempotency_idempotencyrecord;\n")
    with weakened_sql("idempotency/sql/claim.sql", forget):
        assert any("replay" in each for each in problems(live))


def test_control_a_purchase_of_a_malformed_body_is_found(live: LiveServer) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orders.views.read_purchase", lambda body, **_: dict(body))
        assert any("expected one of" in each for each in problems(live))


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
