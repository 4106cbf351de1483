"""Contract, "Reasons under order_refused": each reason, their order, and that nothing changes."""

from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import pytest

from catalogue.models import Product, Shelf, Variation
from core.api.errors import RefusalReason
from tests.contract.rows import REASONS, table
from tests.contract.situations import Shop, data, make_shop, money, refusal
from tests.factories import (
    Merchant,
    add_codes,
    deposit,
    make_account,
    make_category,
    make_client,
    make_product,
    make_variation,
    own_shelf,
)
from wallets.services import open_wallet

pytestmark = pytest.mark.django_db(transaction=True)


def _off(shop: Shop) -> None:
    Product.objects.filter(pk=shop.product.pk).update(active=False)


def _category_off(shop: Shop) -> None:
    Product.objects.filter(pk=shop.product.pk).update(category=make_category(active=False))


def _step(shop: Shop) -> None:
    Shelf.objects.filter(product=shop.product).update(quantity_step=2)


def _no_price(shop: Shop) -> None:
    Shelf.objects.filter(product=shop.product).update(price=None)


def _other_currency(shop: Shop) -> None:
    Product.objects.filter(pk=shop.product.pk).update(currency="EUR")


def _no_stock(shop: Shop) -> None:
    Shelf.objects.filter(product=shop.product).update(available_stock=0)


CASES: dict[str, Callable[[Shop], None]] = {
    "product_inactive": _off,
    "product_inactive: category": _category_off,
    "quantity_step": _step,
    "price_unavailable": _no_price,
    "price_unavailable: currency of another wallet": _other_currency,
    "client_without_wallet": lambda shop: None,
    "insufficient_stock": _no_stock,
    "insufficient_balance": lambda shop: None,
}


def test_the_reasons_are_those_of_the_contract_in_order() -> None:
    assert [reason.value for reason in RefusalReason] == REASONS


def _shop_for(reason: str) -> Shop:
    if reason == "client_without_wallet":
        return Shop(Merchant(make_client(make_account(wallet=False))), make_product(codes=5))
    return make_shop(balance="0" if reason == "insufficient_balance" else "100.00")


@table(REASONS, {name: (name.partition(":")[0], spoil) for name, spoil in CASES.items()})
def test_each_reason_refuses_and_changes_nothing(case: tuple[str, Callable[[Shop], None]]) -> None:
    reason, spoil = case
    shop = _shop_for(reason)
    spoil(shop)
    before = money()
    assert refusal(shop.buy()) == (409, "order_refused", reason)
    assert money() == before


def test_a_switched_off_variation_is_inactive_but_its_product_sells() -> None:
    shop = make_shop()
    variation = make_variation(shop.product, codes=1)
    Variation.objects.filter(pk=variation.pk).update(active=False)
    refused = shop.buy(variation_id=variation.pk)
    assert refusal(refused) == (409, "order_refused", "product_inactive")
    assert shop.buy().status_code == 201


def test_a_client_without_an_account_has_no_wallet() -> None:
    shop = Shop(Merchant(make_client(None)), make_product(codes=1))
    assert refusal(shop.buy()) == (409, "order_refused", "client_without_wallet")


@pytest.mark.parametrize(("first", "second"), list(pairwise(REASONS)))
def test_the_earlier_of_two_reasons_is_returned(first: str, second: str) -> None:
    """A client without a wallet has no balance, so these two reasons never apply together."""
    without_wallet = "client_without_wallet" in (first, second)
    poor = second == "insufficient_balance"
    shop = _shop_for("client_without_wallet" if without_wallet else "")
    if poor:
        shop = make_shop(balance="0")
    CASES[first](shop)
    CASES[second](shop)
    assert refusal(shop.buy()) == (409, "order_refused", first)


def test_all_reasons_are_returned_one_after_the_other() -> None:
    account = make_account(wallet=False)
    shop = Shop(Merchant(make_client(account)), make_product(codes=0, quantity_step=2))
    _off(shop)
    _no_price(shop)
    cures: dict[str, Callable[[], object]] = {
        "product_inactive": lambda: Product.objects.update(active=True),
        "quantity_step": lambda: Shelf.objects.update(quantity_step=1),
        "price_unavailable": lambda: Shelf.objects.update(price=Decimal("9.99")),
        "client_without_wallet": lambda: open_wallet(account=account),
        "insufficient_stock": lambda: add_codes(own_shelf(shop.product), 1),
        "insufficient_balance": lambda: deposit(
            account=account, amount=Decimal("9.99"), actor="test"
        ),
    }
    answered = []
    for cure in cures.values():
        answered.append(refusal(shop.buy("the same key all the time"))[2])
        cure()
    assert answered == list(cures) == REASONS
    assert data(shop.buy("the same key all the time"))["total_price"] == Decimal("9.99")
