"""Plans made for nearly empty tables use indexes, because PostgreSQL keeps them as tables grow."""

from typing import Any

import pytest
from django.db import connection

from tests.concurrency.racing import execute
from tests.factories import Merchant, buy_topup, make_merchant, make_product, make_topup_product
from tests.performance.plans import REPETITIONS, recorded_plans, sequential_scans

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
    """A merchant of a new service, with a new database connection."""
    merchant = make_merchant(balance="10000")
    execute("VACUUM ANALYZE")
    connection.close()
    return merchant


def test_a_voucher_purchase_uses_indexes(merchant: Merchant) -> None:
    product = make_product(price="0.10", codes=REPETITIONS)
    assert scans_of(lambda: merchant.buy(product_id=product.pk, quantity=1), 201) == []


def test_a_top_up_purchase_uses_indexes(merchant: Merchant) -> None:
    product = make_topup_product(price="0.10")
    assert scans_of(lambda: buy_topup(merchant, product)) == []


def test_a_replay_uses_indexes(merchant: Merchant) -> None:
    product = make_product(price="0.10", codes=1)
    assert scans_of(lambda: merchant.buy("one", product_id=product.pk, quantity=1), 201) == []


def test_a_refusal_and_its_release_use_indexes(merchant: Merchant) -> None:
    product = make_product(codes=0)
    assert scans_of(lambda: merchant.buy(product_id=product.pk, quantity=1), 409) == []


def test_reading_an_order_uses_indexes(merchant: Merchant) -> None:
    reference = buy_topup(merchant, make_topup_product(price="0.10"))
    assert scans_of(lambda: merchant.get(f"/orders/{reference}"), 200) == []


def scans_of(call: Any, status: int | None = None) -> list[str]:
    """The statements of repeated requests that scan a table sequentially."""
    with recorded_plans() as plans:
        for _ in range(REPETITIONS):
            answer = call()
            assert status is None or answer.status_code == status
    assert plans
    return sorted(set(sequential_scans(plans, GROWING)))
