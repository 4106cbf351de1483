"""A voucher purchase hands codes over and debits the wallet, once."""

import pytest

from tests.factories import (
    Merchant,
    add_codes,
    make_merchant,
    make_product,
    make_variation,
    own_shelf,
)


@pytest.mark.django_db(transaction=True)
def test_a_purchase_hands_over_codes_and_debits_the_wallet() -> None:
    merchant = make_merchant(balance="100.00")
    product = make_product(price="9.99", codes=3)

    answer = merchant.buy(product_id=product.pk, quantity=2)

    assert answer.status_code == 201
    order = answer.json()["data"]
    assert [code["pin_code"] for code in order["codes"]] == ["1234", "1234"]
    assert merchant.get("/balance").json()["data"] == {"balance": 80.02, "currency": "USD"}


def test_the_same_key_replays_the_same_bytes(merchant: Merchant) -> None:
    product = make_product(codes=3)

    first = merchant.buy("one", product_id=product.pk, quantity=1)
    again = merchant.buy("one", product_id=product.pk, quantity=1)

    assert (again.status_code, again["Idempotent-Replay"]) == (201, "true")
    assert again.content == first.content


def test_codes_are_sold_in_the_order_of_their_import(merchant: Merchant) -> None:
    product = make_product()
    imported = add_codes(own_shelf(product), 3)

    bought = [
        code["code"]
        for quantity in (1, 2)
        for code in merchant.buy(product_id=product.pk, quantity=quantity).json()["data"]["codes"]
    ]

    assert bought == imported


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("price", "reason"), [("2.00", "insufficient_stock"), (None, "price_unavailable")]
)
def test_a_product_sold_through_its_variations_says_so(
    merchant: Merchant, price: str | None, reason: str
) -> None:
    product = make_product(price=price)
    error = merchant.buy(product_id=product.pk, quantity=1).json()["error"]
    assert (error["reason"], "variation" in error["message"]) == (reason, False)

    make_variation(product, codes=1, active=False)
    make_variation(product, codes=1, price=None)
    make_variation(product)
    error = merchant.buy(product_id=product.pk, quantity=1).json()["error"]
    assert "variation" not in error["message"]
    variation = make_variation(product, codes=1)
    error = merchant.buy(product_id=product.pk, quantity=1).json()["error"]
    assert error["reason"] == reason
    assert f"send the variation_id of one, from `GET /products/{product.pk}`" in error["message"]
    bought = merchant.buy(product_id=product.pk, variation_id=variation.pk, quantity=1)
    assert bought.status_code == 201
    error = merchant.buy(product_id=product.pk, quantity=1).json()["error"]
    assert "variation" not in error["message"]


@pytest.mark.django_db(transaction=True)
def test_a_product_with_codes_of_its_own_names_no_variations(merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=1)
    make_variation(product, codes=5)
    error = merchant.buy(product_id=product.pk, quantity=2).json()["error"]
    assert (error["reason"], "variation" in error["message"]) == ("insufficient_stock", False)
