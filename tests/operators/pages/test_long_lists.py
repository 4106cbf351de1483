"""Lists of tables that grow for ever read a bounded number of rows."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from catalogue.models import VoucherCode
from core.database.ids import find_first_id
from operators.frame import long_lists
from operators.frame.base import CappedPaginator
from orders.models import Order
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    buy_topup,
    deposit,
    make_account,
    make_client,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.neighbour import ours
from tests.operators.back_office import list_url, signed_in, url
from wallets.models import LedgerEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def merchant() -> Merchant:
    """A merchant with six orders, one of them of another product than the others."""
    merchant = make_merchant()
    rare, common = make_product(codes=1), make_product(codes=5)
    for product in (rare, *[common] * 5):
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    return merchant


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lists, "LOOKED_AT", 3)


@pytest.fixture
def browser() -> Client:
    return signed_in()


def shown(browser: Client, model: Any, **query: Any) -> tuple[list[Any], str]:
    """The rows of the list, and the query that leads to older ones."""
    found = browser.get(list_url(model, **query)).context["cl"]
    return list(found.result_list), found.older


def orders_of(merchant: Merchant) -> list[Order]:
    return list(Order.objects.filter(client=merchant.client).order_by("-pk"))


def test_a_filter_without_an_index_looks_at_the_newest_rows(
    merchant: Merchant, browser: Client, window: None
) -> None:
    orders = orders_of(merchant)
    rows, older = shown(browser, Order, shelf__id__exact=orders[0].shelf_id)
    assert rows == orders[:3]
    assert "before=" in older


def test_the_link_leads_to_the_rows_before(
    merchant: Merchant, browser: Client, window: None
) -> None:
    orders = orders_of(merchant)
    rare = orders[-1]
    rows, older = shown(browser, Order, shelf__id__exact=rare.shelf_id)
    assert rows == []
    page = browser.get(list_url(Order) + older)
    assert list(page.context["cl"].result_list) == [rare]


def test_a_list_without_older_rows_has_no_link(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The ids of earlier tests may be further apart than the rows that a list looks at.
    monkeypatch.setattr("operators.frame.long_lists.LOOKED_AT", 10**12)
    orders = orders_of(merchant)
    assert shown(browser, Order, shelf__id__exact=orders[0].shelf_id) == (orders[:5], "")


def test_the_totals_of_filtered_orders_are_added_up(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = make_account(currency="EUR")
    other = Merchant(make_client(account))
    card = make_product(price="1500.50", codes=1, currency="EUR")
    deposit(account=account, amount=Decimal(2000))
    assert other.buy(product_id=card.pk, quantity=1).status_code == 201

    def total(**query: Any) -> str:
        page = browser.get(list_url(Order, **query)).text
        return page.partition("Total: ")[2].partition(". ")[0].partition(".\n")[0]

    assert total() == ""
    assert total(client__account__id__exact=merchant.account.pk) == "59.94 USD"
    both = total(created_at_from_0="2020-01-01", created_at_from_1="00:00:00")
    assert both.startswith("1,500.50 EUR, ")  # and the orders of a neighbour
    monkeypatch.setattr(CappedPaginator, "cap", 5)
    assert total(client__account__id__exact=merchant.account.pk) == ""


def test_a_filter_with_an_index_finds_every_row(
    merchant: Merchant, browser: Client, window: None
) -> None:
    orders = orders_of(merchant)
    assert shown(browser, Order, client__id__exact=merchant.client.pk) == (orders, "")


def test_sold_codes_are_shown_by_their_sale(
    merchant: Merchant, browser: Client, window: None
) -> None:
    orders = orders_of(merchant)
    rows, older = shown(browser, VoucherCode, state="sold")
    assert [code.order_id for code in rows][:6] == [order.pk for order in orders]
    assert older == ""
    shelf = orders[0].shelf_id
    rows, older = shown(browser, VoucherCode, state="sold", shelf__id__exact=shelf)
    assert [code.order_id for code in rows] == [order.pk for order in orders[:3]]
    assert "before=" in older


def test_codes_in_stock_are_shown_as_they_will_be_sold(browser: Client, window: None) -> None:
    shelf = own_shelf(make_product(codes=5))
    rows, older = shown(browser, VoucherCode, state="in-stock", shelf__id__exact=shelf.pk)
    assert rows == list(VoucherCode.objects.filter(shelf=shelf).order_by("position"))
    assert older == ""


def test_a_search_by_name_finds_all_rows_of_a_merchant_with_few(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = orders_of(merchant)
    assert shown(browser, Order, q=merchant.account.name) == (orders, "")
    for module in ("operators.orders.orders", "operators.frame.long_lists"):
        monkeypatch.setattr(f"{module}.LOOKED_AT", 3)
    rows, older = shown(browser, Order, q=merchant.account.name)
    assert rows == orders[:3]
    assert "before=" in older


def test_a_search_for_a_key_looks_at_few_rows_of_any_period(
    merchant: Merchant, browser: Client, window: None
) -> None:
    old = orders_of(merchant)[-1]
    key, day = "an-old-key", timezone.now() - timedelta(days=40)
    execute("SET session_replication_role = replica")
    Order.objects.filter(pk=old.pk).update(idempotency_key=key, created_at=day)
    execute("RESET session_replication_role")

    rows, older = shown(browser, Order, q=key)
    assert rows == []
    assert list(browser.get(list_url(Order) + older).context["cl"].result_list) == [old]
    until = {"created_at_to_0": f"{day:%Y-%m-%d}", "created_at_to_1": "23:59:59"}
    assert shown(browser, Order, q=key, **until)[0] == [old]
    assert key in browser.get(url(old)).content.decode()


@pytest.mark.parametrize("model", [Order, LedgerEntry])
def test_a_period_finds_its_rows_and_no_others(model: Any, browser: Client) -> None:
    """Rows of ten days, one for each day, whose ids rise with their times."""
    merchant = make_merchant()
    product = make_product(codes=10)
    for _ in range(10):
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    now = timezone.now().replace(microsecond=0)
    table = model._meta.db_table
    rows = list(ours(model).order_by("pk"))
    execute("SET session_replication_role = replica")
    for n, row in enumerate(rows):
        moment = now - timedelta(days=len(rows) - n)
        execute(f"UPDATE {table} SET created_at = %s WHERE id = %s", moment, row.pk)
    execute("RESET session_replication_role")
    first, last = now - timedelta(days=7, hours=1), now - timedelta(days=4, hours=-1)
    found, _ = shown(
        browser,
        model,
        created_at_from_0=f"{first:%Y-%m-%d}",
        created_at_from_1=f"{first:%H:%M:%S}",
        created_at_to_0=f"{last:%Y-%m-%d}",
        created_at_to_1=f"{last:%H:%M:%S}",
    )
    assert [row.pk for row in found] == [row.pk for row in reversed(rows[-7:-3])]


def test_the_first_id_of_a_time_is_found(merchant: Merchant) -> None:
    orders = orders_of(merchant)
    assert find_first_id(Order, orders[0].created_at + timedelta(days=1)) == orders[0].pk + 1
    first = Order.objects.earliest("pk")
    assert find_first_id(Order, first.created_at - timedelta(days=1)) == first.pk
    assert find_first_id(Order, orders[2].created_at) == orders[2].pk


def test_orders_are_filtered_by_account_and_by_top_up_product(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = orders_of(merchant)
    other = make_merchant()
    game = make_topup_product(name="Gems 60")
    topup = Order.objects.get(reference=buy_topup(other, game))
    of_account = {"client__account__id__exact": merchant.account.pk}
    assert shown(browser, Order, **of_account) == (orders, "")
    assert shown(browser, Order, fulfilment__product__id__exact=game.pk)[0] == [topup]
    assert shown(browser, Order, client__account__id__exact=10**6)[0] == []
    for module in ("operators.orders.orders", "operators.frame.long_lists"):
        monkeypatch.setattr(f"{module}.LOOKED_AT", 3)
    assert shown(browser, Order, **of_account) == (orders, "")  # by the numbers of its client
    assert shown(browser, Order, fulfilment__product__id__exact=game.pk)[1]


def test_a_search_finds_orders_by_product_amount_and_a_part_of_a_reference(
    merchant: Merchant, browser: Client
) -> None:
    topup = Order.objects.get(reference=buy_topup(merchant, make_topup_product(name="Gems 60")))
    rare = orders_of(merchant)[-1]
    for text in ("gems", topup.reference[-6:].lower(), topup.reference[-4:]):
        assert topup in shown(browser, Order, q=text)[0], text
    assert shown(browser, Order, q=str(rare.goods))[0] == [rare]
    found = shown(browser, Order, q=f"{rare.total_price:.2f}")[0]
    assert rare in found
    assert shown(browser, Order, q="123456.78")[0] == []
