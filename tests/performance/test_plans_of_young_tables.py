"""A plan made while a table was nearly empty is kept when it has grown: it must be by index."""

from typing import Any

import pytest
from django.db import connection

from tests.concurrency.racing import execute
from tests.factories import Merchant, buy_topup, make_merchant, make_product, make_topup_product
from tests.performance.plans import AGAIN, read_in_full, watched

pytestmark = pytest.mark.django_db(transaction=True)

GROWING = {
    "accounts_account",
    "accounts_apiclient",
    "accounts_apikey",
    "catalogue_product",
    "catalogue_shelf",
    "catalogue_vouchercode",
    "idempotency_idempotencyrecord",
    "orders_clientcounter",
    "orders_order",
    "topups_fulfilment",
    "topups_topupproduct",
    "wallets_ledgerentry",
    "wallets_wallet",
}


@pytest.fixture
def merchant() -> Merchant:
    """A merchant of a service that has just begun, asked over a connection that has just begun."""
    merchant = make_merchant(balance="10000")
    execute("VACUUM ANALYZE")
    connection.close()
    return merchant


def test_a_voucher_purchase_reads_by_index(merchant: Merchant) -> None:
    product = make_product(price="0.10", codes=AGAIN)
    assert plans_of(lambda: merchant.buy(product_id=product.pk, quantity=1), 201) == []


def test_a_topup_purchase_reads_by_index(merchant: Merchant) -> None:
    product = make_topup_product(price="0.10")
    assert plans_of(lambda: buy_topup(merchant, product)) == []


def test_a_replay_reads_by_index(merchant: Merchant) -> None:
    product = make_product(price="0.10", codes=1)
    assert plans_of(lambda: merchant.buy("one", product_id=product.pk, quantity=1), 201) == []


def test_a_refusal_and_its_release_read_by_index(merchant: Merchant) -> None:
    product = make_product(codes=0)
    assert plans_of(lambda: merchant.buy(product_id=product.pk, quantity=1), 409) == []


def test_reading_an_order_reads_by_index(merchant: Merchant) -> None:
    reference = buy_topup(merchant, make_topup_product(price="0.10"))
    assert plans_of(lambda: merchant.get(f"/orders/{reference}"), 200) == []


def plans_of(ask: Any, status: int | None = None) -> list[str]:
    """The statements of so many requests that read a table from one end to the other."""
    with watched() as plans:
        for _ in range(AGAIN):
            answer = ask()
            assert status is None or answer.status_code == status
    assert plans
    return sorted(set(read_in_full(plans, GROWING)))
