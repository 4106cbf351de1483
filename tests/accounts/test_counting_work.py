"""One request is bounded in the work it may cause: large pages of codes count as several."""

import pytest

from accounts.throttling import CODES_PER_REQUEST
from tests.factories import Merchant, make_account, make_client, make_product


def buy_codes(merchant: Merchant, orders: int, quantity: int) -> None:
    product = make_product(price="0.01", codes=orders * quantity)
    for _ in range(orders):
        assert merchant.buy(product_id=product.pk, quantity=quantity).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_a_page_with_many_codes_counts_as_several_requests() -> None:
    codes = 2 * CODES_PER_REQUEST
    merchant = Merchant(make_client(make_account(), rate_limit_per_minute=codes // 100 + 4))
    buy_codes(merchant, orders=codes // 100, quantity=100)  # leaves 4 requests of this minute

    page = merchant.get("/orders", per_page="100")  # one for the request, two for its codes

    assert sum(len(order["codes"]) for order in page.json()["data"]["items"]) == codes
    assert merchant.get("/ping").status_code == 200
    refused = merchant.get("/ping")
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limited"


@pytest.mark.django_db(transaction=True)
def test_a_page_with_few_codes_counts_as_one_request() -> None:
    merchant = Merchant(make_client(make_account(), rate_limit_per_minute=8))
    buy_codes(merchant, orders=4, quantity=100)

    statuses = [merchant.get("/orders", per_page="100").status_code for _ in range(5)]

    assert statuses == [200, 200, 200, 200, 429]
