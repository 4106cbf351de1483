"""Contract, "Query parameters of list endpoints": pages, search, in_stock, order of the items."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.contract.situations import Shop, data, make_shop
from tests.factories import (
    Merchant,
    link,
    make_client,
    make_merchant,
    make_product,
    make_variation,
    own_shelf,
)

pytestmark = pytest.mark.django_db(transaction=True)


def _names(merchant: Merchant, **query: Any) -> list[str]:
    return [item["name"] for item in data(merchant.get("/products", **query))["items"]]


def _buy(shop: Shop, number: int) -> list[str]:
    """Buys this many orders. Returns their references, newest first."""
    return [data(shop.buy())["reference"] for _ in range(number)][::-1]


def test_an_order_names_the_reference_of_its_own_product() -> None:
    merchant = make_merchant()
    account = merchant.account
    named = [make_product(codes=1) for _ in range(2)]
    for number, product in enumerate(named):
        link(account, f"mine-{number}", own_shelf(product))

    bought = [data(merchant.buy(product_id=each.pk, quantity=1))["reference"] for each in named]

    orders = [data(merchant.get(f"/orders/{reference}")) for reference in bought]
    assert [order["merchant_reference"] for order in orders] == ["mine-0", "mine-1"]


def items_of_all_pages(merchant: Merchant, path: str, *, total: int) -> list[Any]:
    """The items of every page of two, and of the empty page after the last."""
    items = []
    last_page = max(1, -(-total // 2))
    for number in range(1, last_page + 2):
        page = data(merchant.get(path, page=number, per_page=2))
        assert page["pagination"] == {
            "page": number,
            "per_page": 2,
            "total": total,
            "last_page": last_page,
        }
        items += page["items"]
    return items


@pytest.mark.parametrize("total", [0, 1, 2, 3, 4])
def test_product_pages_contain_every_product_once(total: int) -> None:
    merchant = make_merchant()
    products = [make_product().pk for _ in range(total)]
    items = items_of_all_pages(merchant, "/products", total=total)
    assert [item["id"] for item in items] == products


@pytest.mark.parametrize("total", [0, 1, 2, 3, 4])
def test_order_pages_contain_every_order_once_newest_first(total: int) -> None:
    shop = make_shop()
    references = _buy(shop, total)
    items = items_of_all_pages(shop.merchant, "/orders", total=total)
    assert [item["reference"] for item in items] == references


def test_each_client_sees_only_its_own_orders() -> None:
    shop = make_shop()
    sibling = Shop(Merchant(make_client(shop.merchant.client.account)), shop.product)
    mine, other, newest = (data(buyer.buy())["reference"] for buyer in (shop, sibling, shop))
    for buyer, references in ((shop, [newest, mine]), (sibling, [other])):
        page = data(buyer.merchant.get("/orders"))
        assert [item["reference"] for item in page["items"]] == references
        assert page["pagination"]["total"] == len(references)


def test_orders_ignore_other_parameters() -> None:
    shop = make_shop()
    references = _buy(shop, 2)
    page = data(shop.merchant.get("/orders", status="failed", merchant_reference="x", search="y"))
    assert [item["reference"] for item in page["items"]] == references


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("steam", ["Steam 10", "STEAM 20%"]),
        ("EAM 1", ["Steam 10"]),
        ("%", ["STEAM 20%"]),
        ("_", ["a_b"]),
        ("\\", ["back\\slash"]),
        ("\u00c9T\u00c9", ["\u00e9t\u00e9"]),
        ("' OR 1=1 --", []),
        ("steam\x00", []),
        ("x" * 10_000, []),
        (" ", ["Steam 10", "STEAM 20%", "a_b", "back\\slash", "\u00e9t\u00e9"]),
        (" steam 1 ", ["Steam 10"]),
        ("", ["Steam 10", "STEAM 20%", "a_b", "back\\slash", "\u00e9t\u00e9"]),
    ],
)
def test_search_finds_a_part_of_the_name_in_any_case(search: str, found: list[str]) -> None:
    merchant = make_merchant()
    for name in ("Steam 10", "STEAM 20%", "a_b", "back\\slash", "\u00e9t\u00e9"):
        make_product(name=name)
    assert _names(merchant, search=search) == found


@pytest.mark.parametrize(
    ("value", "filters"),
    [("1", True), ("true", True), ("TRUE", True), ("0", False), ("yes", False), ("", False)],
)
def test_in_stock_filters_products(value: str, filters: bool) -> None:
    merchant = make_merchant()
    make_product(name="stocked", codes=1)
    make_product(name="empty")
    make_variation(make_product(name="variation"), codes=1)
    make_variation(make_product(name="retired"), codes=1, active=False)
    listed = _names(merchant, in_stock=value)
    assert listed == ["stocked", "variation"] if filters else len(listed) == 4


def test_search_and_in_stock_together_limit_the_total() -> None:
    merchant = make_merchant()
    make_product(name="Steam 1", codes=1)
    make_product(name="Steam 2")
    make_product(name="Other", codes=1)
    page = data(merchant.get("/products", search="steam", in_stock="true", per_page=1))
    assert (page["pagination"]["total"], page["pagination"]["last_page"]) == (1, 1)


def _queries_of(merchant: Merchant, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert merchant.get(path, per_page=100).status_code == 200
    return len(queries)


def test_fifty_orders_need_as_many_queries_as_one() -> None:
    shop = make_shop(price="0.01", codes=51)
    _buy(shop, 1)
    one = _queries_of(shop.merchant, "/orders")
    _buy(shop, 50)
    assert _queries_of(shop.merchant, "/orders") == one <= 5


def test_fifty_products_need_as_many_queries_as_one() -> None:
    merchant = make_merchant()
    make_variation(make_product(codes=1))
    one = _queries_of(merchant, "/products")
    for _ in range(50):
        make_variation(make_product(codes=1), codes=1)
    assert _queries_of(merchant, "/products") == one <= 5


def test_an_order_shows_the_current_merchant_reference() -> None:
    shop = make_shop()
    reference = data(shop.buy())["reference"]
    account = shop.merchant.account
    named = link(account, "new name", own_shelf(shop.product))
    assert data(shop.merchant.get(f"/orders/{reference}"))["merchant_reference"] == "new name"
    named.delete()
    assert data(shop.merchant.get("/orders"))["items"][0]["merchant_reference"] is None
