"""The page and the file of sales and margins, for those who may see sales."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from catalogue.models import Batch, Shelf
from figures.margin_counting import count_margins
from figures.margins import MOST_DAYS
from figures.stock_counting import count_stock
from tests.factories import Merchant, make_batch, make_product, own_shelf
from tests.operators.back_office import make_staff, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]
SEES = "figures.view_dailymargin"


@pytest.fixture
def shelf(merchant: Merchant) -> Shelf:
    """A shelf that sold three of five codes: 30 USD, for 22.50 USD."""
    shelf = own_shelf(make_product(price="10", name="Steam 10"))
    batch = make_batch(shelf, 5)
    Batch.objects.filter(pk=batch.pk).update(unit_cost=Decimal("7.5"), cost_currency="USD")
    assert merchant.buy(product_id=shelf.product_id, quantity=3).status_code == 201
    count_margins()
    count_stock()
    return shelf


def finance() -> Client:
    return signed_in(make_staff(SEES))


def show(browser: Client, **query: str) -> str:
    """The text of the page, with single spaces."""
    answer = browser.get(reverse("margins", query=query))
    assert answer.status_code == 200
    return " ".join(re.sub("<[^>]+>", " ", answer.content.decode()).split())


def test_the_page_shows_what_is_left(shelf: Shelf) -> None:
    page = show(finance())

    assert "Steam 10 3 30.00 USD 0.00 USD 30.00 USD 22.50 USD 7.50 USD 25.0 % 2 15.00 USD" in page
    assert "Voucher codes, net of refunds and credits 30.00 USD 3 sold, margin 7.50 USD" in page


@pytest.mark.parametrize("by", ["merchant", "supplier", "batch", "day", "month"])
def test_lines_add_up_something_else(merchant: Merchant, shelf: Shelf, by: str) -> None:
    name = {
        "merchant": merchant.account.name,
        "supplier": "Supplier",
        "batch": f"Batch {shelf.batches.get().pk}",
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "month": f"{datetime.now(UTC):%Y-%m}",
    }[by]

    assert f"{name} 3 30.00 USD" in show(finance(), by=by)


def test_a_cost_that_is_not_known_leaves_the_margin_empty(shelf: Shelf) -> None:
    Batch.objects.update(unit_cost=None, cost_currency="")

    page = show(finance())

    assert "Steam 10 3 30.00 USD 0.00 USD 30.00 USD - 3 not known - 2 - 2 not known" in page
    assert "The cost of 3 is not known." in page


def test_a_period_without_sales_is_empty(shelf: Shelf) -> None:
    day = f"{datetime.now(UTC).date() - timedelta(days=400)}"

    assert "Nothing was sold or paid back in this period." in show(finance(), since=day, until=day)


def test_a_chart_has_a_bar_for_each_day(shelf: Shelf) -> None:
    page = finance().get(reverse("margins")).content.decode()

    last = datetime.now(UTC).date()
    bars = re.findall(r"<g><title>(.*?)</title>", page)
    assert len(bars) == 30
    assert bars[0] == f"{last - timedelta(days=29)}: 0.00 USD, margin 0.00 USD"
    assert bars[-1] == f"{last}: 30.00 USD, margin 7.50 USD"
    assert page.count('<rect class="sales"') == 1


def test_a_wrong_period_says_so(shelf: Shelf) -> None:
    assert "Enter a day like" in show(finance(), since="yesterday")
    page = show(finance(), since="2026-02-02", until="2026-02-01")
    assert "Choose a day on or after the first day." in page


def test_lines_by_day_are_of_a_short_period(shelf: Shelf) -> None:
    """Lines by day read every day, so a long period would read more with each year."""
    last = datetime.now(UTC).date()
    query = {"by": "day", "until": f"{last}"}
    quarter = {**query, "since": f"{last - timedelta(days=MOST_DAYS - 1)}"}
    longer = {**query, "since": f"{last - timedelta(days=MOST_DAYS)}"}
    browser, words = finance(), "Lines by day show at most 92 days."

    assert f"{last} 3 30.00 USD" in show(browser, **quarter)
    assert words not in show(browser, **quarter)
    assert words in show(browser, **longer)
    answer = browser.get(reverse("margins_file", query=longer))
    assert answer.headers["Location"] == reverse("margins", query=longer)


def test_the_file_has_exact_numbers(shelf: Shelf) -> None:
    answer = finance().get(reverse("margins_file", query={"by": "product"}))

    (line,) = csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert line == {
        "name": "Steam 10",
        "currency": "USD",
        "sold": "3",
        "sales": "30.00",
        "refunds_and_credits": "0.00",
        "net_sales": "30.00",
        "cost": "22.50",
        "margin": "7.50",
        "sold_without_known_cost": "0",
        "codes_in_stock": "2",
        "stock_value": "15.00",
    }


def test_a_name_is_no_formula(merchant: Merchant, shelf: Shelf) -> None:
    shelf.product.name = "=1+1"
    shelf.product.save()

    answer = finance().get(reverse("margins_file"))

    assert "'=1+1," in answer.content.decode()


@pytest.mark.parametrize("page", ["margins", "margins_file"])
def test_others_do_not_see_it(page: str) -> None:
    assert signed_in(make_staff("figures.view_dailysales")).get(reverse(page)).status_code == 403


@pytest.mark.menu
@pytest.mark.parametrize("sees", [True, False])
def test_the_menu_leads_to_it_if_it_opens(sees: bool) -> None:
    browser = signed_in(make_staff("orders.view_order", *([SEES] if sees else [])))

    page = browser.get(reverse("admin:index")).content.decode()

    assert (f'href="{reverse("margins")}"' in page) is sees
