"""Contract, "Voucher purchase body": its seven rules, and the limits of its fields."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from catalogue.models import Product, Shelf
from tests.contract.rows import VOUCHER_RULES, table
from tests.contract.situations import Shop, data, error, make_shop, money, refusal
from tests.factories import (
    add_codes,
    link,
    make_account,
    make_merchant,
    make_product,
    make_variation,
    own_shelf,
)

pytestmark = pytest.mark.django_db(transaction=True)


def _linked(*, variation: bool = False) -> tuple[Shop, int | None]:
    """A shop whose shelf has the merchant reference "mine", and the id of the shelf's variation."""
    shop = make_shop()
    account = shop.merchant.account
    if not variation:
        link(account, "mine", own_shelf(shop.product))
        return shop, None
    made = make_variation(shop.product, codes=3)
    link(account, "mine", made.shelf)
    return shop, made.pk


def both_names() -> None:
    shop, _ = _linked()
    assert refusal(shop.buy(merchant_reference="mine"))[:2] == (422, "product_reference_ambiguous")


def both_names_even_if_one_is_unknown() -> None:
    shop = make_shop()
    for body in ({"merchant_reference": "?"}, {"merchant_reference": "no", "product_id": 0}):
        assert refusal(shop.buy(**body))[:2] == (422, "product_reference_ambiguous")


def variation_disagrees() -> None:
    shop, _ = _linked(variation=True)
    other = make_variation(shop.product, codes=1).pk
    for wrong in (other, other + 1):
        answer = shop.buy(product_id=..., merchant_reference="mine", variation_id=wrong)
        assert refusal(answer)[:2] == (422, "product_reference_ambiguous")


def variation_agrees() -> None:
    shop, variation = _linked(variation=True)
    for body in ({}, {"variation_id": None}, {"variation_id": variation}):
        order = data(shop.buy(product_id=..., merchant_reference="mine", **body))
        assert (order["variation_id"], order["merchant_reference"]) == (variation, "mine")


def reference_of_somebody_else() -> None:
    _linked()
    answer = make_merchant().buy(merchant_reference="mine", quantity=1)
    assert refusal(answer)[:2] == (404, "product_reference_not_found")
    assert error(answer)["merchant_reference"] == "mine"


def each_reference_names_its_own_product() -> None:
    shop, _ = _linked()
    other = make_product(codes=1)
    account = shop.merchant.account
    link(account, "other", own_shelf(other))
    for reference, product in (("mine", shop.product), ("other", other)):
        order = data(shop.buy(product_id=..., merchant_reference=reference))
        assert (order["product_id"], order["merchant_reference"]) == (product.pk, reference)


def variation_of_another_product() -> None:
    shop = make_shop()
    for wrong in (make_variation(make_product(), codes=1).pk, 10**18):
        assert refusal(shop.buy(variation_id=wrong))[:2] == (422, "variation_mismatch")


def fields_of_topups() -> None:
    values: dict[str, Any] = {"player_id": "1", "system_product_id": 1, "fields": {}}
    for name, value in values.items():
        answer = make_shop().buy(**{name: value})
        assert refusal(answer)[:2] == (422, "validation_failed")
        assert name in error(answer)["fields"]


def unknown_product() -> None:
    answer = make_shop().buy(product_id=10**18)
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert list(error(answer)["fields"]) == ["product_id"]


def switched_off_product() -> None:
    shop = make_shop()
    Product.objects.update(active=False)
    assert refusal(shop.buy()) == (409, "order_refused", "product_inactive")


def answer_holds_the_codes() -> None:
    shop = Shop(make_merchant(), make_product())
    codes = add_codes(own_shelf(shop.product), 3)
    order = data(shop.buy(quantity=3, delivery_type="voucher"))
    assert [code["code"] for code in order["codes"]] == codes
    assert order["status"] == "completed"


CASES: dict[str, Callable[[], None]] = {
    "rule 1": both_names,
    "rule 1: never picks one": both_names_even_if_one_is_unknown,
    "rule 2": variation_disagrees,
    "rule 2: agreeing or left out": variation_agrees,
    "rule 3": reference_of_somebody_else,
    "rule 3: one of several": each_reference_names_its_own_product,
    "rule 4": variation_of_another_product,
    "rule 5": fields_of_topups,
    "rule 6: does not exist": unknown_product,
    "rule 6: switched off": switched_off_product,
    "rule 7": answer_holds_the_codes,
}


@table(VOUCHER_RULES, CASES)
def test_each_rule_of_the_voucher_body(case: Callable[[], None]) -> None:
    case()


NOT_IDS: list[Any] = ["1", 1.0, 1.5, True, [], {}, 0, -1, 2**63, 10**30, ""]
NOT_TEXT: list[Any] = [None, 1, True, [], {}]
BAD_VALUES: dict[str, list[Any]] = {
    "product_id": [..., None, *NOT_IDS],
    "quantity": [..., None, 101, *NOT_IDS],
    "variation_id": NOT_IDS,
    "delivery_type": ["", "Voucher", "voucher ", None, 1, True, [], {}, ["voucher"]],
    "merchant_reference": [*NOT_TEXT, "", " a", "_a", "-a", "a\n", "a\tb", "a+b", "a" * 65],
    "variationId": [1],
    "Quantity": [1],
    "quantity ": [1],
    "": [1],
    "total_price": [0],
}


@pytest.mark.parametrize("field", BAD_VALUES)
def test_an_invalid_value_names_its_field_and_buys_nothing(field: str) -> None:
    shop = make_shop()
    before = money()
    by_reference = {"product_id": ...} if field == "merchant_reference" else {}
    for value in BAD_VALUES[field]:
        answer = shop.buy(**{**by_reference, field: value})
        assert refusal(answer)[:2] == (422, "validation_failed"), value
        assert list(error(answer)["fields"]) == [field], value
    assert money() == before


@pytest.mark.parametrize("field", ["product_id", "merchant_reference"])
def test_a_null_reference_is_invalid_and_not_ambiguous(field: str) -> None:
    shop, _ = _linked()
    answer = shop.buy(**{"merchant_reference": "mine", field: None})
    assert refusal(answer)[:2] == (422, "validation_failed")
    assert list(error(answer)["fields"]) == [field]


@pytest.mark.parametrize("reference", ["a", "7", "\u00e9\u00df\u4e2d\u0663", "a" * 64, "0 ._-/:#Z"])
def test_a_valid_merchant_reference_buys(reference: str) -> None:
    shop = make_shop()
    account = shop.merchant.account
    link(account, reference, own_shelf(shop.product))
    order = data(shop.buy(product_id=..., merchant_reference=reference))
    assert order["merchant_reference"] == reference


def test_a_variation_sells_its_own_codes_at_its_own_price() -> None:
    shop = make_shop(price="9.99")
    variation = make_variation(shop.product, price="5.00")
    codes = add_codes(variation.shelf, 1)
    order = data(shop.buy(variation_id=variation.pk))
    assert ([code["code"] for code in order["codes"]], order["total_price"]) == (codes, 5)
    again = shop.buy(variation_id=variation.pk)
    assert refusal(again) == (409, "order_refused", "insufficient_stock")


def test_a_product_sells_its_own_codes_and_not_those_of_a_variation() -> None:
    """Even if PostgreSQL would find the shelf of the variation first."""
    product = make_product()
    make_variation(product, codes=3)
    own_shelf(product).delete()
    add_codes(Shelf.objects.create(product=product, price=Decimal("1.00")), 1)
    order = data(Shop(make_merchant(), product).buy())
    assert (order["variation_id"], order["unit_price"]) == (None, 1)


def test_the_currencies_of_other_accounts_do_not_matter(alone: None) -> None:
    make_account(currency="EUR")
    assert data(make_shop().buy())["currency"] == "USD"


def test_step_three_and_stock_four_sells_three() -> None:
    shop = make_shop(codes=4, quantity_step=3)
    assert refusal(shop.buy(quantity=4))[2] == "quantity_step"
    assert refusal(shop.buy(quantity=6))[2] == "insufficient_stock"
    assert data(shop.buy(quantity=3))["units"] == 1
