"""Orders are listed by the time of their purchase, newest first."""

from functools import partial

import pytest

from tests.concurrency.racing import (
    holding_locks,
    in_background,
    outcome,
    wait_for_waiting,
    with_own_http,
)
from tests.factories import make_merchant, make_product, own_shelf

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_order_that_waited_for_its_shelf_is_newer() -> None:
    merchant = make_merchant()
    busy, free = make_product(codes=1), make_product(codes=1)

    with (
        holding_locks(
            "SELECT FROM catalogue_shelf WHERE id = %s FOR UPDATE", own_shelf(busy).pk
        ) as shelf,
        in_background(
            partial(with_own_http(merchant).buy, product_id=busy.pk, quantity=1)
        ) as waiting,
    ):
        wait_for_waiting(1)
        assert outcome(merchant.buy(product_id=free.pk, quantity=1)) == "bought"
        shelf.rollback()
        assert outcome(waiting.result()) == "bought"

    orders = merchant.get("/orders").json()["data"]["items"]
    assert [order["product_id"] for order in orders] == [busy.pk, free.pk]
    assert orders[0]["created_at"] > orders[1]["created_at"]
    assert waiting.result().json()["data"]["created_at"] == orders[0]["created_at"]
