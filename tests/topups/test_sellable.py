"""A top-up product that cannot be bought for a reason known in advance is not `sellable`."""

from collections.abc import Callable
from typing import Any

import pytest

from orders import purchase
from orders.models import Order
from tests.factories import (
    Merchant,
    make_account,
    make_client,
    make_field,
    make_merchant,
    make_topup_product,
)
from tests.neighbour import ours
from topups.fields import read_fields
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db(transaction=True)


def without_account() -> Merchant:
    return Merchant(make_client())


def without_wallet() -> Merchant:
    return Merchant(make_client(make_account(wallet=False)))


def dropdown(*, required: bool, options: list[str]) -> TopUpProduct:
    product = make_topup_product()
    make_field(product, "dropdown", number=1, required=required, options=options)
    return product


NOT_SELLABLE: dict[str, tuple[Callable[[], Merchant], Callable[[], TopUpProduct], str]] = {
    "another currency": (
        make_merchant,
        lambda: make_topup_product(currency="EUR"),
        "price_unavailable",
    ),
    "no account": (without_account, make_topup_product, "client_without_wallet"),
    "no wallet": (without_wallet, make_topup_product, "client_without_wallet"),
    "no options": (
        make_merchant,
        lambda: dropdown(required=True, options=[]),
        "validation_failed",
    ),
}
SELLABLE: dict[str, Callable[[], TopUpProduct]] = {
    "plain": make_topup_product,
    "out of stock": lambda: make_topup_product(available_stock=0),
    "too expensive": lambda: make_topup_product(price="1000"),
    "options": lambda: dropdown(required=True, options=["eu"]),
    "optional dropdown without options": lambda: dropdown(required=False, options=[]),
}


def shown(merchant: Merchant, product: TopUpProduct) -> list[bool]:
    """`sellable` in the list and on the product's own path."""
    listed = merchant.get("/topup-products").json()["data"]["items"]
    detail = merchant.get(f"/topup-products/{product.pk}").json()["data"]
    (item,) = [item for item in listed if item["id"] == product.pk]
    return [item["sellable"], detail["sellable"]]


def buy(merchant: Merchant, product: TopUpProduct, **fields: Any) -> Any:
    return merchant.buy(
        delivery_type="top_up", system_product_id=product.pk, player_id="1", fields=fields
    )


@pytest.mark.parametrize("case", NOT_SELLABLE.values(), ids=NOT_SELLABLE)
def test_what_is_not_sellable_is_refused(
    case: tuple[Callable[[], Merchant], Callable[[], TopUpProduct], str],
) -> None:
    make_merchant()  # a neighbour with an account, a wallet and the right currency
    new_merchant, new_product, reason = case
    merchant, product = new_merchant(), new_product()
    make_field(make_topup_product(), "dropdown", options=["eu"])

    assert shown(merchant, product) == [False, False]

    for fields in ({}, {"1": "eu"}) if product.fields.exists() else ({},):
        error = buy(merchant, product, **fields).json()["error"]
        assert error.get("reason", error["code"]) == reason
    assert not ours(Order).exists()


@pytest.mark.parametrize("new_product", SELLABLE.values(), ids=SELLABLE)
def test_stock_and_balance_do_not_matter(new_product: Callable[[], TopUpProduct]) -> None:
    product = new_product()
    dropdown(required=True, options=[])  # a neighbour that is not sellable

    assert shown(make_merchant(), product) == [True, True]


def test_a_dropdown_without_options_says_what_to_do() -> None:
    merchant, product = make_merchant(), dropdown(required=True, options=[])

    error = buy(merchant, product, **{"1": "eu"}).json()["error"]

    assert error["fields"] == {
        "fields.1": ["No value is valid, so this product cannot be bought: contact support."]
    }


def test_options_removed_during_a_purchase_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    merchant, product = make_merchant(), dropdown(required=True, options=["eu"])

    def read_late(**arguments: Any) -> Any:
        values = read_fields(**arguments)
        product.fields.get().options.all().delete()
        return values

    monkeypatch.setattr(purchase, "read_fields", read_late)

    error = buy(merchant, product, **{"1": "eu"}).json()["error"]

    assert error["code"] == "validation_failed"
    assert "cannot be bought" in error["fields"]["fields"][0]
    assert not ours(Order).exists()
