"""A week of a company's stock, lived through in one browser beside one server that sells."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from catalogue.models import Batch, PriceList, Shelf, VoucherCode
from figures.margin_counting import count_margins
from figures.models import StockThreshold
from figures.stock_counting import count_stock
from merchants.models import Email
from operators.upkeep.reconcile import reconcile
from operators.warnings.raising import sweep_warnings
from orders.models import Order
from tests.browsing import take_session
from tests.commands import run
from tests.concurrency.racing import in_background, race
from tests.factories import Merchant, make_account, make_client, make_product, own_shelf
from tests.live import LiveServer
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone", "worker"),
]

CODES = 60
BUYERS = 3
COST, REGULAR, DEARER = Decimal("4.25"), Decimal("10.00"), Decimal("12.00")
PERCENT_OFF = 10
CREDIT = Decimal("1.50")
OLD_PRICE, NEW_PRICE = REGULAR * 9 / 10, DEARER * 9 / 10


def file_of(*lines: str) -> FilePayload:
    content = "\r\n".join(["Code;Serial number", *lines, ""]).encode("utf-8-sig")
    return {"name": "delivery.csv", "mimeType": "text/csv", "buffer": content}


class Sales:
    """Merchants who buy at the same time, a code at once."""

    def __init__(self, merchants: list[Merchant], shelf: Shelf) -> None:
        self._merchants, self._shelf = merchants, shelf
        self.paid: list[Decimal] = []
        self.codes: list[str] = []
        self.refusals: list[str] = []

    def go_on(self, ended: Event, *, at_most: int) -> None:
        """Sells until told to end. After about `at_most` sales it waits for that."""
        race([partial(self._buy, one, ended, at_most) for one in self._merchants])

    @contextmanager
    def meanwhile(self, *, at_most: int) -> Iterator[None]:
        """Sells during the block."""
        ended = Event()
        with in_background(partial(self.go_on, ended, at_most=at_most)):
            try:
                yield
            finally:
                ended.set()

    def _buy(self, merchant: Merchant, ended: Event, at_most: int) -> None:
        while not ended.wait(0.05):
            if len(self.paid) >= at_most:
                continue
            answer = merchant.buy(product_id=self._shelf.product_id, quantity=1)
            if answer.status_code != 201:
                self.refusals.append(answer.json()["error"]["reason"])
                return
            order = answer.json()["data"]
            self.paid.append(Decimal(str(order["total_price"])))
            self.codes += [one["code"] for one in order["codes"]]


@pytest.fixture
def shelf(transactional_db: None) -> Shelf:
    return own_shelf(make_product(name="Steam 10", price=str(REGULAR)))


@pytest.fixture
def page(server: LiveServer, chromium: Browser, shelf: Shelf) -> Page:
    page = chromium.new_page(base_url=server.base_url)
    keeper = make_staff(superuser=True)
    type(keeper).objects.filter(pk=keeper.pk).update(email="keeper@shop.example")
    take_session(page, server, signed_in(keeper))
    return page


def test_a_week(page: Page, server: LiveServer, shelf: Shelf) -> None:
    account = make_account(balance="2000")
    merchants = [Merchant(make_client(account), http=server.http) for _ in range(BUYERS)]
    sales = Sales(merchants, shelf)

    batch = import_a_delivery(page, shelf)
    assign_a_price_list(page, account)
    StockThreshold.objects.create(shelf=shelf, stock=10)
    assert warnings_sent() == 0

    with sales.meanwhile(at_most=15):
        change_the_price(page, shelf)
    before_the_recall = len(sales.paid)
    with sales.meanwhile(at_most=26):
        recalled = recall_half(page, shelf)
    sales.go_on(Event(), at_most=CODES)

    assert 0 < before_the_recall < len(sales.paid)
    sold = set(VoucherCode.objects.filter(order_id__isnull=False).values_list("pk", flat=True))
    assert not sold & recalled
    assert len(sold) + len(recalled) == CODES
    assert len(set(sales.codes)) == len(sales.paid) == len(sold)
    assert set(sales.refusals) == {"insufficient_stock"}
    in_order = list(Order.objects.order_by("pk").values_list("total_price", flat=True))
    assert in_order == sorted(in_order)  # nobody paid the old price after the new
    assert set(in_order) == {OLD_PRICE, NEW_PRICE}
    assert sorted(sales.paid) == in_order

    assert [warnings_sent(), warnings_sent()] == [1, 1]
    (email,) = Email.objects.filter(to="keeper@shop.example")
    assert email.facts["title"].startswith("Steam 10")

    credited = Order.objects.latest("pk").reference
    run("credit_order", credited, str(CREDIT), "--reference", "kind", "--note", "kind words")
    revenue = sum(sales.paid) - CREDIT
    check_the_margins(page, batch, sold=len(sold), revenue=revenue)
    assert reconcile()["findings"] == []


def import_a_delivery(page: Page, shelf: Shelf) -> Batch:
    """Uploads a file with mistakes, then the right one, and imports it."""
    good = [f"W-{number:03};{number:08}" for number in range(CODES)]
    page.goto(url(shelf))
    page.get_by_role("link", name="Import codes").first.click()
    _upload(page, file_of("W-1", *good[:2], good[0]))
    expect(page.get_by_text("line 2: 1 column instead of 2")).to_be_visible()
    expect(page.get_by_text("line 5 repeats line 3")).to_be_visible()
    assert not VoucherCode.objects.exists()

    page.get_by_role("link", name="Upload another file").click()
    _upload(page, file_of(*good))
    page.get_by_role("button", name=f"Import {CODES} codes").click()
    expect(page.get_by_text(re.compile(f"{CODES} codes were added to"))).to_be_visible()
    return Batch.objects.get()


def _upload(page: Page, file: FilePayload) -> None:
    page.set_input_files("[name=file]", file)
    page.fill("[name=supplier]", "Acme")
    page.fill("[name=unit_cost]", str(COST))
    page.fill("[name=cost_currency]", "USD")
    page.get_by_role("button", name="Upload and check").click()


def assign_a_price_list(page: Page, account: Any) -> None:
    page.goto("/admin/catalogue/pricelist/add/")
    page.fill("[name=name]", "Gold")
    page.fill("[name=currency]", "USD")
    page.get_by_role("button", name="Create price list", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    page.goto(url(PriceList.objects.get(), "add_price"))
    page.select_option("[name=about]", "everything")
    page.select_option("[name=terms]", "percent")
    page.fill("[name=percent_off]", str(PERCENT_OFF))
    page.get_by_role("button", name="Show the changes").click()
    with page.expect_navigation(url=re.compile(r"/pricelist/\d+/change/$")):
        page.get_by_role("button", name="Change these prices").click()
    page.goto(url(account, "choose_list"))
    page.select_option("[name=price_list]", label="Gold")
    page.get_by_role("button", name="Show the changes").click()
    page.get_by_role("button", name="Change these prices").click()
    expect(page.get_by_role("link", name="Gold").first).to_be_visible()


def change_the_price(page: Page, shelf: Shelf) -> None:
    page.goto(f"/admin/catalogue/shelf/prices/?row={shelf.pk}")
    page.select_option("[name=change]", "prices")
    page.fill(f"[name=price-{shelf.pk}]", str(DEARER))
    page.get_by_role("button", name="Show the changes").click()
    page.get_by_role("button", name="Change these prices").click()
    expect(page.get_by_text("1 price is new now")).to_be_visible()


def recall_half(page: Page, shelf: Shelf) -> set[int]:
    """Holds the newest half of the codes, those that would be sold last; returns their ids."""
    page.goto(f"/admin/catalogue/vouchercode/?shelf__id__exact={shelf.pk}")
    ticks = page.locator("input.action-select")
    for place in range(CODES // 2):
        ticks.nth(place).check()
    page.select_option("[name=action]", "hold_selected")
    page.get_by_role("button", name="Run").first.click()
    page.fill("[name=reason]", "The supplier asks for them back.")
    page.get_by_role("button", name="Hold codes").click()
    expect(page.get_by_text(re.compile(f"{CODES // 2} codes"))).to_be_visible()
    return set(VoucherCode.objects.filter(hold__isnull=False).values_list("pk", flat=True))


def warnings_sent() -> int:
    """The number of emails about stock, after another look at the limits."""
    sweep_warnings()
    return Email.objects.filter(to="keeper@shop.example").count()


def check_the_margins(page: Page, batch: Batch, *, sold: int, revenue: Decimal) -> None:
    """The page of the week shows what was added up here."""
    count_margins()
    count_stock()
    today = datetime.now(UTC).date()
    page.goto(f"/admin/margins/?since={today - timedelta(days=6)}&until={today}&by=batch")
    margin = revenue - sold * COST
    line = page.get_by_role("row", name=f"Batch {batch.pk}")
    for number in (revenue, sold * COST, margin):
        expect(line).to_contain_text(f"{number:,.2f}")
    card = page.locator(".desk-card").filter(has_text="Margin")
    expect(card).to_contain_text(f"{margin:,.2f} USD")
