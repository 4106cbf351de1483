"""The page and the file of sales and margins, for those who may see sales."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format

from accounts.models import Account
from catalogue.models import Batch, Shelf
from core.backoffice.staff_roles import StaffRole
from core.database.columns import NAME_LENGTH
from figures.margin_counting import count_margins
from figures.margins import MOST_DAYS
from figures.models import DailyMargin, DailyStock, MonthlyMargin
from figures.stock_counting import count_stock
from merchants.frame import downloads
from merchants.models import PreparedFile
from operators.sales.ranges import named_ranges
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    add_codes,
    buy_topup,
    make_account,
    make_batch,
    make_client,
    make_merchant,
    make_product,
    make_topup_product,
    own_shelf,
)
from tests.operators.back_office import browser_with, make_staff, signed_in, staff_with, url
from tests.performance.plans import recorded_plans

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

    assert "Sales and margins by product, in USD" in page
    assert "Steam 10 3 30.00 0.00 30.00 22.50 7.50 25.0 % 2 15.00" in page
    assert (
        "Net sales 30.00 USD Voucher codes: 3, 30.00 USD Cost 22.50 USD Margin 7.50 USD 25.0 %"
        " Stock value 15.00 USD 2 codes in stock (counted at "
    ) in page
    at = datetime.now(UTC).replace(hour=0, minute=0, second=1, microsecond=0)
    DailyStock.objects.update(counted_at=at)
    assert "2 codes in stock (counted at 00:00:01)" in show(finance())
    day = at.date() - timedelta(days=1)
    DailyStock.objects.update(day=day)
    assert f"2 codes in stock (on {date_format(day)})" in show(finance())


def test_an_address_with_an_empty_choice_shows_lines_by_product(shelf: Shelf) -> None:
    assert "Steam 10 3 30.00" in show(finance(), by="")


@pytest.mark.parametrize("by", ["merchant", "supplier", "batch", "day", "month"])
def test_lines_add_up_something_else(merchant: Merchant, shelf: Shelf, by: str) -> None:
    name = {
        "merchant": merchant.account.name,
        "supplier": "Supplier",
        "batch": f"Batch {shelf.batches.get().pk}",
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "month": f"{datetime.now(UTC):%B %Y}",
    }[by]

    assert f"{name} 3 30.00 0.00" in show(finance(), by=by)


def test_amounts_have_two_decimals_and_the_file_has_all(merchant: Merchant, shelf: Shelf) -> None:
    Batch.objects.update(unit_cost=Decimal("7.1234"))
    tiny = make_product(price="0.0004", name="Tiny", codes=1)
    assert merchant.buy(product_id=tiny.pk, quantity=1).status_code == 201
    count_margins()
    browser = finance()

    page, file = show(browser), browser.get(reverse("margins_file")).text

    assert "Steam 10 3 30.00 0.00 30.00 21.37 8.63 28.8 % 2 14.25" in page
    assert "Tiny 1 0.0004 0.00 0.0004" in page
    assert "Steam 10,USD,3,30.00,0.00,30.00,21.3702,8.6298," in file


def test_amounts_of_several_currencies_name_their_currency(shelf: Shelf) -> None:
    other = Merchant(make_client(make_account(balance="100", currency="EUR")))
    product = make_product(price="20", name="Euro card", codes=1, currency="EUR")
    assert other.buy(product_id=product.pk, quantity=1).status_code == 201
    count_margins()

    page = show(finance())

    assert "Steam 10 3 30.00 USD 0.00 USD 30.00 USD 22.50 USD 7.50 USD 25.0 % 2 15.00 USD" in page
    assert "Euro card 1 20.00 EUR 0.00 EUR 20.00 EUR 1 not known not known" in page


def test_a_cost_that_is_not_known_is_called_so(shelf: Shelf) -> None:
    Batch.objects.update(unit_cost=None, cost_currency="")

    page = show(finance())

    assert "Steam 10 3 30.00 0.00 30.00 3 not known not known 2 2 not known" in page
    assert "Margin not known Nothing that was sold has a known cost." in page


def test_a_period_without_sales_is_empty(shelf: Shelf) -> None:
    day = f"{datetime.now(UTC).date() - timedelta(days=400)}"

    assert "Nothing was sold or paid back in this period." in show(finance(), since=day, until=day)


def test_a_chart_has_a_bar_for_each_day(shelf: Shelf) -> None:
    last = datetime.now(UTC).date()
    first = last - timedelta(days=29)
    browser = finance()

    page = browser.get(reverse("margins", query={"since": first, "until": last}))

    (chart,) = page.context["charts"]
    data = json.loads(chart["data"])
    margins, net = (one["data"] for one in data["datasets"])
    assert [data["labels"][0], data["labels"][-1]] == [f"{first:%-d %b}", f"{last:%-d %b}"]
    assert net == [*[0] * 29, 30.0]
    assert margins == [*[0] * 29, 7.5]
    table = show(browser, since=f"{first}", until=f"{last}")
    assert f"{first} 0.00 0.00" in table
    assert f"{last} 30.00 7.50" in table


def test_a_chart_has_the_numbers_of_the_readers_language(shelf: Shelf) -> None:
    last = datetime.now(UTC).date()
    browser = finance()
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"

    (chart,) = browser.get(reverse("margins")).context["charts"]

    assert json.loads(chart["options"])["locale"] == "de"
    assert [name for name, *_amounts in chart["bars"]][-1] == f"{last:%d.%m.%Y}"
    with translation.override("de"):
        assert json.loads(chart["data"])["labels"][-1] == date_format(last, "j. N")


def test_named_ranges_end_today_or_before_this_one() -> None:
    ranges = {str(one.name): (one.since, one.until) for one in named_ranges(date(2026, 2, 18))}

    assert ranges == {
        "Today": (date(2026, 2, 18), date(2026, 2, 18)),
        "Yesterday": (date(2026, 2, 17), date(2026, 2, 17)),
        "This week": (date(2026, 2, 16), date(2026, 2, 18)),
        "Last week": (date(2026, 2, 9), date(2026, 2, 15)),
        "This month": (date(2026, 2, 1), date(2026, 2, 18)),
        "Last month": (date(2026, 1, 1), date(2026, 1, 31)),
        "This quarter": (date(2026, 1, 1), date(2026, 2, 18)),
        "Last quarter": (date(2025, 10, 1), date(2025, 12, 31)),
        "This year": (date(2026, 1, 1), date(2026, 2, 18)),
        "Last year": (date(2025, 1, 1), date(2025, 12, 31)),
    }


def test_last_week_with_one_merchant_is_two_links(merchant: Merchant, shelf: Shelf) -> None:
    """The account's page leads to its figures, and those to the range."""
    other = make_merchant()
    assert other.buy(product_id=shelf.product_id, quantity=1).status_code == 201
    count_margins()
    for row in DailyMargin.objects.all():
        row.pk, row.day = None, row.day - timedelta(days=7)
        row.save(force_insert=True)
    browser = signed_in()
    account = browser.get(url(other.account)).content.decode()
    first = unescape(re.findall(rf'href="({reverse("margins")}[^"]*)"', account)[0])

    ranges = {str(one["name"]): one for one in browser.get(first).context["ranges"]}
    page = show(browser, **dict(parse_qsl(urlsplit(ranges["Last week"]["url"]).query)))

    assert f"Only {other.account}." in page
    assert "Steam 10 1 10.00 0.00 10.00 7.50 2.50 25.0 %" in page


def test_a_range_keeps_what_the_lines_are_about(merchant: Merchant, shelf: Shelf) -> None:
    query = {"account": merchant.account.pk, "product": shelf.product_id, "by": "batch"}

    page = finance().get(reverse("margins", query=query))

    chosen = [one for one in page.context["ranges"] if one["chosen"]]
    assert len(chosen) == 1
    for one in page.context["ranges"]:
        assert f"account={merchant.account.pk}&product={shelf.product_id}&by=batch" in one["url"]
    assert f"Only {merchant.account}, Steam 10." in show(
        finance(), **{name: str(value) for name, value in query.items()}
    )


def test_the_margin_of_what_has_a_known_cost_is_shown(merchant: Merchant, shelf: Shelf) -> None:
    add_codes(shelf, 3)  # without a batch, and so without a cost
    assert merchant.buy(product_id=shelf.product_id, quantity=4).status_code == 201
    count_margins()

    page = finance().get(reverse("margins"))

    texts = " ".join(re.sub("<[^>]+>", " ", page.content.decode()).split())
    assert (
        "Cost 37.50 USD 2 of 7 codes have no known cost Margin 12.50 USD 25.0 % of 50.00 USD"
        in texts
    )
    assert "Steam 10 7 70.00 0.00 70.00 37.50 2 not known 12.50 25.0 %" in texts
    assert json.loads(page.context["charts"][0]["data"])["datasets"][0]["data"][-1] == 12.5


def test_codes_without_a_known_cost_are_listed_with_a_link(
    merchant: Merchant, shelf: Shelf
) -> None:
    batch = shelf.batches.get()
    Batch.objects.update(unit_cost=None, cost_currency="")
    add_codes(shelf, 3)  # of no batch
    assert merchant.buy(product_id=shelf.product_id, quantity=4).status_code == 201
    count_margins()

    page = signed_in().get(reverse("margins")).content.decode()

    assert "The cost of 7 sold codes is not known" in page
    assert f'<a href="{url(batch)}" class="text-link">Enter the cost</a>' in page
    assert "2 codes belong to no batch, so nobody can enter their cost." in page
    keeper = staff_with(StaffRole.STOCK_KEEPER)
    others = browser_with(StaffRole.FINANCE).get(reverse("margins")).content.decode()
    assert url(batch) not in others  # they may not see batches
    assert f"Ask {keeper}" in others
    Batch.objects.update(unit_cost=Decimal(1), cost_currency="EUR")
    for browser in (signed_in(), browser_with(StaffRole.FINANCE)):
        rate = f"Enter a rate from EUR to USD of {datetime.now(UTC):%Y-%m-%d} or earlier"
        assert rate in show(browser)


def test_top_ups_are_not_counted_as_codes_without_a_known_cost(
    merchant: Merchant, shelf: Shelf
) -> None:
    for _ in range(2):
        buy_topup(merchant, make_topup_product(price="4"))
    count_margins()

    page = show(finance())

    assert "have no known cost" not in page
    assert "Cost 22.50 USD Margin 7.50 USD 25.0 % of 30.00 USD, the net sales with" in page
    assert "All in USD 5 38.00 0.00 38.00 22.50 7.50 25.0 %" in page
    add_codes(shelf, 1)  # without a batch, and so without a cost
    assert merchant.buy(product_id=shelf.product_id, quantity=3).status_code == 201
    count_margins()
    assert "1 of 6 codes have no known cost" in show(finance())
    assert "The cost of 1 sold code is not known" in show(finance())
    answer = finance().get(reverse("margins_file", query={"by": "product"}))
    lines = csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert sum(int(line["sold_without_known_cost"]) for line in lines) == 1


def test_finance_chooses_a_merchant_and_a_product(shelf: Shelf) -> None:
    page = browser_with(StaffRole.FINANCE).get(reverse("margins")).content.decode()

    for name in ("merchants", "products"):
        assert f'data-placeholder="All {name}"' in page


def test_a_long_period_by_merchant_reads_a_row_for_each_merchant_and_month(
    merchant: Merchant, shelf: Shelf
) -> None:
    """A merchant has a row for each batch and month, of which years are too many to read."""
    row = DailyMargin.objects.get()
    batches = [make_batch(shelf, 1).pk for _ in range(60)]
    months = [date(2020, month, 1) for month in range(1, 13)]
    figures = {"account_id": row.account_id, "quantity": 1, "sold": 2, "paid_back": 0}
    MonthlyMargin.objects.bulk_create(
        MonthlyMargin(day=month, shelf_id=shelf.pk, batch_id=batch, **figures)
        for month in months
        for batch in batches
    )
    execute("ANALYZE figures_monthlymargin, figures_monthlymarginsum")
    year = {"since": "2020-01-01", "until": "2020-12-31", "by": "merchant"}
    browser = finance()

    with recorded_plans() as plans:
        page = show(browser, **year)

    assert f"{merchant.account} 720 1,440.00 0.00 1,440.00" in page
    assert "Net sales Cost" not in page
    assert "the file has the cost and the margin of each merchant" in page
    of_accounts = [plan for plan in plans if "figures_monthlymargin W" in plan["Query Text"]]
    assert of_accounts == []
    file = browser.get(reverse("margins_file", query=year)).content.decode()
    assert f"{merchant.account},USD,720,1440.00" in file


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

    assert f"{last} 3 30.00" in show(browser, **quarter)
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


def test_the_file_of_a_merchant_names_it_and_has_no_stock(merchant: Merchant, shelf: Shelf) -> None:
    Account.objects.filter(pk=merchant.account.pk).update(name="Corner Games")
    query = {"by": "product", "account": str(merchant.account.pk)}
    answer = finance().get(reverse("margins_file", query=query))

    (line,) = csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert "margins-of-corner-games-by-product-" in answer["Content-Disposition"]
    assert (line["merchant"], line["name"], line["sold"]) == ("Corner Games", "Steam 10", "3")
    by_merchant = finance().get(reverse("margins_file", query={**query, "by": "merchant"}))
    assert "name,currency," in by_merchant.text
    assert "merchant," not in by_merchant.text
    assert not {"codes_in_stock", "stock_value"} & line.keys()


def test_a_large_file_of_a_merchant_with_a_long_name_is_prepared(
    merchant: Merchant, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    Account.objects.filter(pk=merchant.account.pk).update(name="a" * NAME_LENGTH)
    monkeypatch.setattr(downloads, "WHOLE_BYTES", -1)
    query = {"by": "product", "account": str(merchant.account.pk)}

    answer = finance().get(reverse("margins_file", query=query))

    assert answer.status_code == 302
    assert PreparedFile.objects.get().name.startswith("margins-of-aaa")


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


def test_the_page_compares_with_as_many_days_before(merchant: Merchant, shelf: Shelf) -> None:
    last = datetime.now(UTC).date()
    for row in DailyMargin.objects.all():
        row.pk, row.day = None, row.day - timedelta(days=7)
        row.save(force_insert=True)
    assert merchant.buy(product_id=shelf.product_id, quantity=1).status_code == 201
    count_margins()
    week = {"since": f"{last - timedelta(days=6)}", "until": f"{last}"}

    page = show(finance(), **week)

    compared = "Net sales 40.00 USD +33 % 30.00 USD in the 7 days before Voucher codes"
    assert compared in page
    week["until"] = f"{last + timedelta(days=20)}"  # days that have not begun sold nothing
    assert compared in show(finance(), **week)
