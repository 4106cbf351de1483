"""Contract, "Resources and their fields": each field, its type, and whether it may be null."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.answers import operations, served_document
from tests.contract.rows import FIELDS, LIST_PARAMETERS, OPTIONAL_FIELDS, TOP_UP_LIST_PARAMETERS
from tests.contract.situations import data, error, make_shop
from tests.factories import link, make_product, make_variation, own_shelf

pytestmark = pytest.mark.django_db(transaction=True)

TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: type(value) is str,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, Decimal),
    "boolean": lambda value: type(value) is bool,
    "array": lambda value: type(value) is list,
    "object": lambda value: type(value) is dict,
    "date-time": lambda value: datetime.fromisoformat(value).tzinfo is not None,
}


def check_fields(resource: str, value: dict[str, Any]) -> None:
    fields, optional = FIELDS[resource], OPTIONAL_FIELDS.get(resource, set())
    assert fields.keys() - optional <= value.keys() <= fields.keys()
    for name, member in value.items():
        kind, _, nullable = fields[name].partition(" or ")
        assert (nullable and member is None) or TYPES[kind](member), (name, member)


def _kind(schema: dict[str, Any]) -> str:
    """The type of a schema in the contract's words, such as `string or null`."""
    if "$ref" in schema:
        return _kind(served_document()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    if "allOf" in schema and "type" not in schema:  # a reference with a description
        return _kind(schema["allOf"][0])
    kind: str = "date-time" if schema.get("format") == "date-time" else schema["type"]
    return f"{kind} or null" if schema.get("nullable") else kind


@pytest.mark.parametrize("resource", FIELDS)
def test_the_document_has_exactly_the_contracts_fields(resource: str) -> None:
    schema = served_document()["components"]["schemas"][resource]
    kinds = {name: _kind(member) for name, member in schema["properties"].items()}
    assert kinds == FIELDS[resource]
    optional = OPTIONAL_FIELDS.get(resource, set())
    assert set(schema["required"]) == FIELDS[resource].keys() - optional


@pytest.mark.parametrize("endpoint", LIST_PARAMETERS)
def test_each_list_has_exactly_the_contracts_parameters(endpoint: str) -> None:
    documented = {
        f"{method} {path}": {each["name"] for each in operation["parameters"]}
        for method, path, operation in operations(served_document())
        if any(each["name"] == "page" for each in operation.get("parameters", ()))
    }
    assert documented.keys() <= (LIST_PARAMETERS | TOP_UP_LIST_PARAMETERS).keys()
    assert documented[endpoint] == LIST_PARAMETERS[endpoint]


def test_ping_returns_the_client_and_its_rate_limit() -> None:
    merchant = make_shop().merchant
    ping = data(merchant.get("/ping"))
    check_fields("Ping", ping)
    assert ping["client"] == merchant.client.name
    assert ping["rate_limit_per_minute"] == merchant.client.rate_limit_per_minute


def test_balance_returns_amount_and_currency() -> None:
    balance = data(make_shop(balance="12.34").merchant.get("/balance"))
    check_fields("Balance", balance)
    assert balance == {"balance": Decimal("12.34"), "currency": "USD"}


def test_a_product_with_every_field_set() -> None:
    shop = make_shop(price="9.99", codes=4, type="voucher", quantity_step=3)
    variation = make_variation(shop.product, price="9.49", codes=2)
    account = shop.merchant.account
    link(account, "shelf", own_shelf(shop.product))
    link(account, "other shelf", variation.shelf)
    product = data(shop.merchant.get(f"/products/{shop.product.pk}"))
    check_fields("Product", product)
    check_fields("Variation", product["variations"][0])
    assert product == {
        "id": shop.product.pk,
        "name": shop.product.name,
        "type": "voucher",
        "currency": "USD",
        "merchant_reference": "shelf",
        "available_stock": 4,
        "in_stock": True,
        "price": Decimal("9.99"),
        "quantity_step": 3,
        "sellable": True,
        "variations": [
            {
                "id": variation.pk,
                "name": variation.name,
                "merchant_reference": "other shelf",
                "available_stock": 2,
                "price": Decimal("9.49"),
                "quantity_step": 1,
                "sellable": True,
            }
        ],
    }


def test_a_product_with_every_optional_field_empty() -> None:
    merchant = make_shop().merchant
    product = make_product(price=None)
    make_variation(product, price=None)
    shown = data(merchant.get(f"/products/{product.pk}"))
    check_fields("Product", shown)
    check_fields("Variation", shown["variations"][0])
    for shelf in (shown, shown["variations"][0]):
        assert (shelf["price"], shelf["sellable"]) == (None, False)
        assert (shelf["available_stock"], shelf["merchant_reference"]) == (0, None)
    assert (shown["type"], shown["in_stock"]) == (None, False)


@pytest.mark.parametrize("type", ["voucher", "top_up", None])
def test_each_product_type_is_returned(type: str | None) -> None:
    shop = make_shop(type=type)
    assert data(shop.merchant.get(f"/products/{shop.product.pk}"))["type"] == type


def test_a_price_in_another_currency_is_null() -> None:
    shop = make_shop(currency="EUR")
    product = data(shop.merchant.get(f"/products/{shop.product.pk}"))
    assert (product["price"], product["sellable"], product["currency"]) == (None, False, "EUR")


@pytest.mark.parametrize(
    ("own", "variation", "active", "in_stock"),
    [(0, 0, True, False), (1, 0, True, True), (0, 1, True, True), (0, 1, False, False)],
)
def test_in_stock_includes_variations_but_available_stock_does_not(
    own: int, variation: int, active: bool, in_stock: bool
) -> None:
    shop = make_shop(codes=own)
    make_variation(shop.product, codes=variation, active=active)
    product = data(shop.merchant.get(f"/products/{shop.product.pk}"))
    assert (product["available_stock"], product["in_stock"]) == (own, in_stock)
    listed = data(shop.merchant.get("/products", in_stock="1"))["items"]
    assert bool(listed) is in_stock


def test_available_stock_is_counted_live() -> None:
    shop = make_shop(codes=5)
    shop.buy(quantity=2)
    assert data(shop.merchant.get(f"/products/{shop.product.pk}"))["available_stock"] == 3


def test_a_voucher_order_is_the_same_in_every_response() -> None:
    shop = make_shop(quantity_step=2, price="3.50", codes=4)
    variation = make_variation(shop.product, price="1.25", codes=3, quantity_step=3)
    of_product = data(shop.buy(quantity=4))
    of_variation = data(shop.buy(quantity=3, variation_id=variation.pk))
    for order in (of_product, of_variation):
        check_fields("VoucherOrder", order)
        assert data(shop.merchant.get(f"/orders/{order['reference']}")) == order
    assert data(shop.merchant.get("/orders"))["items"] == [of_variation, of_product]
    assert of_product["variation_id"] is None
    assert of_variation["variation_id"] == variation.pk
    assert (of_product["quantity"], of_product["units"], of_product["units_per_sale"]) == (4, 2, 2)
    assert (of_product["unit_price"], of_product["total_price"]) == (Decimal("3.5"), Decimal(7))
    assert of_product["status"] == "completed"
    assert of_product["product_id"] == of_variation["product_id"] == shop.product.pk


def test_a_code_has_serial_number_and_pin_code() -> None:
    order = data(make_shop().buy(quantity=2))
    for code in order["codes"]:
        check_fields("Code", code)
        assert code.keys() == FIELDS["Code"].keys()


def test_the_error_object_has_the_contracts_fields() -> None:
    check_fields("Error", error(make_shop(codes=0).buy()))
    check_fields("Error", error(make_shop().merchant.buy()))


def test_pagination_has_the_contracts_fields() -> None:
    page = data(make_shop().merchant.get("/products"))["pagination"]
    check_fields("Pagination", page)
