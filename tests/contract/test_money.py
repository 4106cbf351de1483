"""Money is exact from the deposit to the response, and an order never changes."""

from decimal import Decimal

import pytest

from catalogue.models import Product, Shelf
from tests.contract.situations import data, make_shop
from tests.factories import make_merchant

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("balance", "written"),
    [
        ("90071992547409.93", b"90071992547409.93"),
        ("9999999999999999.9999", b"9999999999999999.9999"),
        ("0.0001", b"0.0001"),
        ("100.00", b"100.00"),
        ("100.5", b"100.50"),
        ("1000000000000000", b"1000000000000000.00"),
        ("0", b"0.00"),
    ],
)
def test_a_balance_has_every_digit(balance: str, written: bytes) -> None:
    answer = make_merchant(balance=balance).get("/balance")
    assert b'"balance":' + written + b"," in answer.content
    assert data(answer)["balance"] == Decimal(balance)


@pytest.mark.parametrize(
    ("price", "step", "quantity", "total", "left"),
    [
        ("0.07", 1, 59, "4.13", "90071992547405.80"),
        ("0.1", 1, 3, "0.3", "90071992547409.63"),
        ("1.0001", 1, 100, "100.01", "90071992547309.92"),
        ("0.0003", 5, 15, "0.0009", "90071992547409.9291"),
        ("33.33", 3, 99, "1099.89", "90071992546310.04"),
    ],
)
def test_totals_are_exact(price: str, step: int, quantity: int, total: str, left: str) -> None:
    shop = make_shop(balance="90071992547409.93", price=price, codes=quantity, quantity_step=step)
    answer = shop.buy(quantity=quantity)
    order = data(answer)
    assert (order["unit_price"], order["total_price"]) == (Decimal(price), Decimal(total))
    assert order["units"] * order["unit_price"] == order["total_price"]
    assert order["units"] * order["units_per_sale"] == order["quantity"] == quantity
    assert data(shop.merchant.get("/balance"))["balance"] == Decimal(left)
    assert b"e" not in answer.content.partition(b'"total_price":')[2].partition(b",")[0].lower()


def test_a_price_of_many_digits_stays_exact() -> None:
    shop = make_shop(balance="9999999999999999.9999", price="99999999999999.9999", codes=3)
    order = data(shop.buy(quantity=3))
    assert order["total_price"] == Decimal("299999999999999.9997")
    assert data(shop.merchant.get(f"/orders/{order['reference']}")) == order


def test_the_last_cent_buys() -> None:
    shop = make_shop(balance="9.99", price="9.99")
    assert shop.buy().status_code == 201
    assert data(shop.merchant.get("/balance"))["balance"] == 0
    assert shop.buy().json()["error"]["reason"] == "insufficient_balance"


def test_an_order_never_changes() -> None:
    """An order keeps the price, units and product of its purchase."""
    shop = make_shop(price="9.99", codes=6, quantity_step=2)
    order = data(shop.buy(quantity=4))
    Shelf.objects.update(price=Decimal(1), quantity_step=1)
    Product.objects.update(active=False, currency="EUR", name="renamed")
    assert data(shop.merchant.get(f"/orders/{order['reference']}")) == order
    assert data(shop.merchant.get("/orders"))["items"] == [order]
