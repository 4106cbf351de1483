"""The number of queries of each endpoint is fixed, and the same for one item and for many."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import (
    Merchant,
    buy_topup,
    make_field,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
)

pytestmark = pytest.mark.django_db

Shop = tuple[Merchant, str]


@pytest.fixture(params=[1, 7])
def shop(request: pytest.FixtureRequest) -> Shop:
    """A merchant with 1 or 7 products and orders of each kind, and the reference of an order."""
    merchant = make_merchant(balance="1000")
    for _ in range(request.param):
        product = make_product(codes=5)
        make_variation(product, codes=1)
        make_field(make_topup_product(), "dropdown", options=["eu", "us"])
        bought = merchant.buy(product_id=product.pk, quantity=2)
        buy_topup(merchant)
    return merchant, bought.json()["data"]["reference"]


def count_queries(call: Callable[[], Any], status: int = 200) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert call().status_code == status
    return len(queries)


@pytest.mark.parametrize(
    ("path", "queries"),
    [
        ("/ping", 1),
        ("/balance", 2),
        ("/products", 5),
        ("/orders", 3),
        ("/orders/{reference}", 1),
        ("/topup-products", 5),
    ],
)
def test_queries_of_a_read(shop: Shop, path: str, queries: int) -> None:
    """One for the API key, which reads an order with it, and others."""
    merchant, reference = shop
    assert count_queries(lambda: merchant.get(path.format(reference=reference))) == queries


def test_queries_of_a_voucher_purchase(shop: Shop) -> None:
    """API key, claim, purchase, store."""
    merchant, _ = shop
    product = make_product(codes=9)
    assert count_queries(lambda: merchant.buy(product_id=product.pk, quantity=7), 201) == 4


def test_queries_of_a_top_up_purchase(shop: Shop) -> None:
    """API key, claim, fields of the product, purchase, store."""
    merchant, _ = shop
    product = make_topup_product()
    fields = {str(make_field(product, "dropdown", options=["eu"]).number): "eu" for _ in range(5)}
    body: dict[str, Any] = {
        "delivery_type": "top_up",
        "system_product_id": product.pk,
        "player_id": "1",
    }
    assert count_queries(lambda: merchant.buy(fields=fields, **body), 201) == 5


def test_queries_of_a_replay(shop: Shop) -> None:
    """The stored response is read with the API key."""
    merchant, _ = shop
    product = make_product(codes=1)
    merchant.buy("one key", product_id=product.pk, quantity=1)
    assert (
        count_queries(lambda: merchant.buy("one key", product_id=product.pk, quantity=1), 201) == 1
    )


@pytest.mark.django_db(transaction=True)
def test_queries_of_a_refusal(merchant: Merchant) -> None:
    """API key, claim, purchase, release; without stock, also whether a variation is sold."""
    product = make_product(codes=0)
    assert count_queries(lambda: merchant.buy(product_id=product.pk, quantity=1), 409) == 5
    stocked, poor = make_product(codes=1), make_merchant(balance="0.01")
    assert count_queries(lambda: poor.buy(product_id=stocked.pk, quantity=1), 409) == 4
