"""The overview, and the spend by day and by product."""

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django_otp import DEVICE_ID_SESSION_KEY

from accounts.models import Account, SecondFactor
from cases.services import answer_case, reject_case
from core.database import functions as sql
from core.database.functions import statement_timeout
from figures.models import DailySales
from figures.sales import Spend, spend_of_account
from figures.sales_counting import count_sales
from merchants import overview
from merchants.models import Role
from merchants.money import charts, wallet_pages
from merchants.money.charts import draw_days, draw_products
from orders.models import Order
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
)
from tests.merchants.people import browser_of, make_member, open_session, viewer_of
from tests.merchants.selling.test_order_pages import buy, date_back
from tests.operators.back_office import make_case, make_staff
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from wallets.transfers import announce_transfer

pytestmark = pytest.mark.django_db

SPEND = "/merchant/wallet/spend/"


@pytest.mark.parametrize("counted", ["nothing", "a part", "everything"])
def test_spend_is_summed_by_day_and_product(counted: str) -> None:
    account = make_account(balance="1000.00")
    one, two = Merchant(make_client(account)), Merchant(make_client(account))
    product = make_product(name="Card", price="10.00", codes=9)
    variation = make_variation(product, name="EU", price="9.00", codes=9)
    topup_product = make_topup_product(name="Gems", price="4.99")
    stranger = make_merchant()
    buy(stranger, product)
    today = datetime.now(UTC)
    week_ago = today - timedelta(days=7)
    date_back(buy(one, product), week_ago)
    date_back(buy(two, product, quantity=2), week_ago)
    date_back(buy(one, product), today - timedelta(days=40))
    if counted == "a part":
        count_sales()
    buy(one, product, variation_id=variation.pk)
    buy_topup(two, topup_product)
    if counted == "everything":
        count_sales()

    spent = spend_of_account(account, since=today.date() - timedelta(days=29), until=today.date())

    assert spent == [
        Spend(week_ago.date(), "Card", 2, Decimal("30.0000")),
        Spend(today.date(), "Card / EU", 1, Decimal("9.0000")),
        Spend(today.date(), "Gems", 1, Decimal("4.9900")),
    ]
    page = viewer_of(account).get(SPEND).content.decode()
    assert "43.99 USD" in page
    assert "Card / EU" in page
    for share in ("68 %", "20 %", "11 %"):
        assert share in page
    assert f"Highest day: {week_ago:%Y-%m-%d} with 30.00 USD." in page


def test_a_refund_is_no_less_spend_and_the_first_day_counts() -> None:
    merchant = make_merchant(balance="100.00")
    reference = buy_topup(merchant, make_topup_product(name="Gems", price="4.99"))
    operator = make_operator()
    for move in (Move.CLAIM, Move.REJECT):
        move_now(reference=reference, move=move, operator=operator)
    sweep_refunds()
    day = Order.objects.get(reference=reference).created_at.date()

    for counted in (False, True):
        if counted:
            count_sales()
        for since in (day, day - timedelta(days=1)):
            spent = spend_of_account(merchant.account, since=since, until=day)
            assert [(each.orders, each.amount) for each in spent] == [(1, Decimal("4.9900"))]
        for other in (day - timedelta(days=1), day + timedelta(days=1)):
            assert spend_of_account(merchant.account, since=other, until=other) == []


@pytest.mark.parametrize("counted", [False, True])
def test_spend_of_a_calendar_month(counted: bool) -> None:
    merchant = make_merchant(balance="1000.00")
    Account.objects.filter(pk=merchant.account.pk).update(created_at="2026-01-31T23:59:59Z")
    cards = [make_product(name=f"Card {number}", price="1.00", codes=9) for number in range(12)]
    for day in ("2026-01-31T23:59:59", "2026-02-01T00:00:00", "2026-02-28T23:59:59"):
        date_back(buy(merchant, cards[0]), datetime.fromisoformat(f"{day}+00:00"))
    date_back(buy(merchant, cards[1]), datetime(2026, 3, 1, tzinfo=UTC))
    for card in cards[2:]:
        date_back(buy(merchant, card), datetime(2026, 2, 14, tzinfo=UTC))
    if counted:
        count_sales()
    browser = viewer_of(merchant.account)

    page = browser.get(SPEND, {"month": "2026-02"}).content.decode()

    assert "12.00 USD from 2026-02-01 to 2026-02-28." in page
    names = re.findall(r'<th scope="row">(Card \d+)</th>\s*<td class="number">(\d)', page)
    assert sorted(names) == sorted([("Card 0", "2"), *((f"Card {n}", "1") for n in range(2, 12))])
    assert '<option value="2026-02" selected>' in page
    assert '<option value="2026-01">' in page
    assert '<option value="2025-12">' not in page, "the account did not exist"
    for wrong in ("2025-12", "2026-13", "x"):
        answer = browser.get(SPEND, {"month": wrong})
        assert answer.status_code == 200
        assert "2026-02-14" not in answer.content.decode()


def test_the_spend_of_every_month_of_an_old_account() -> None:
    merchant = make_merchant()
    Account.objects.filter(pk=merchant.account.pk).update(created_at="2019-01-31T23:59:59Z")

    page = viewer_of(merchant.account).get(SPEND, {"month": "2019-02"}).content.decode()

    assert '<option value="2019-02" selected>' in page
    assert '<option value="2019-01">' in page


def test_the_chart_needs_no_styles_or_scripts_and_its_bars_fit() -> None:
    merchant = make_merchant(balance="1000.00")
    product = make_product(name='<b>"Card"</b>', price="10.00", codes=9)
    for days in (0, 3, 3, 29):
        date_back(buy(merchant, product), datetime.now(UTC) - timedelta(days=days))

    page = viewer_of(merchant.account).get(SPEND).content.decode()

    assert "<b>" not in page
    assert "style=" not in page
    text = page[page.index("<svg") : page.index("</svg>") + len("</svg>")]
    picture = ET.fromstring(text)
    bars = picture.findall("rect")
    assert [bar.attrib["height"] for bar in bars] == ["80", "160", "80"]
    assert all(int(bar.attrib["y"]) + int(bar.attrib["height"]) == 160 for bar in bars)
    left, _, width, _ = map(int, picture.attrib["viewBox"].split())
    assert all(left <= int(bar.attrib["x"]) for bar in bars)
    assert all(int(bar.attrib["x"]) + 16 <= left + width for bar in bars)
    assert int(bars[-1].attrib["x"]) + 2 * 16 > left + width  # no empty slot after today
    amounts = [(one.text, one.attrib["y"]) for one in picture.findall("text") if "y" in one.attrib]
    assert amounts[:5] == [("0", "160"), ("5", "120"), ("10", "80"), ("15", "40"), ("20", "0")]
    assert "40.00 USD from " in page
    assert "By day, in USD" in page


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        ("184.17", ["0", "50", "100", "150", "200"]),
        ("1000", ["0", "500", "1,000"]),
        ("1234567", ["0", "500,000", "1,000,000", "1,500,000"]),
        ("0.07", ["0.00", "0.02", "0.04", "0.06", "0.08"]),
        ("0.0001", ["0.00000", "0.00005", "0.00010"]),
    ],
)
def test_the_axis_has_round_amounts_up_to_the_highest_day(most: str, labels: list[str]) -> None:
    today = datetime.now(UTC).date()
    chart = draw_days([Spend(today, "Card", 1, Decimal(most))], first=today, last=today)
    assert [label for label, _ in chart.ticks] == labels
    assert chart.bars[0].end >= chart.ticks[-1][1] == 0


def test_every_day_has_a_position_and_small_amounts_are_visible() -> None:
    today = datetime.now(UTC).date()
    spent = [
        Spend(today, "expensive", 1, Decimal("1000000")),
        Spend(today - timedelta(days=1), "cheap", 1, Decimal("0.0001")),
    ]

    chart = draw_days(spent, first=today - timedelta(days=29), last=today)

    assert len(chart.bars) == 30
    assert [bar.length for bar in chart.bars[-3:]] == [0, 1, 160]


def test_only_the_highest_products_have_their_own_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MOST_PRODUCTS", 10)
    today = datetime.now(UTC).date()
    spent = [Spend(today, f"product {n}", n, Decimal(n)) for n in range(1, 15)]

    bars = draw_products(spent).bars

    assert [bar.name for bar in bars[:2]] == ["product 14", "product 13"]
    assert (bars[10].name, bars[10].amount, bars[10].orders) == ("4 others", Decimal(10), 10)
    assert len(bars) == 11
    assert bars[0].length == 300 * 14 // sum(range(1, 15))
    assert bars[0].percent == "13"


def test_a_small_share_is_not_nothing() -> None:
    today = datetime.now(UTC).date()
    spent = [Spend(today, name, 1, Decimal(amount)) for name, amount in (("a", 999), ("b", 1))]

    assert [bar.percent for bar in draw_products(spent).bars] == ["100", "< 1"]


def test_spend_does_not_read_the_orders_that_are_counted() -> None:
    merchant = make_merchant(balance="1000.00")
    product = make_product(price="1.00", codes=9)
    for _ in range(3):
        buy(merchant, product)
    count_sales()
    DailySales.objects.update(amount=Decimal(7))
    reference = buy(merchant, product)
    day = Order.objects.get(reference=reference).created_at.date()

    spent = spend_of_account(merchant.account, since=day - timedelta(days=1), until=day)

    assert sum(each.amount for each in spent) == Decimal(8)


def test_pages_say_that_too_many_orders_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    browser = viewer_of(make_merchant().account)

    def endless(*_: Any, **__: Any) -> Any:
        with statement_timeout(1):
            return sql.query("pg_sleep", 5)

    monkeypatch.setattr(wallet_pages, "spend_of_account", endless)
    monkeypatch.setattr(overview, "spend_of_account", endless)

    for page in (SPEND, "/merchant/"):
        assert "The latest orders are not counted yet." in browser.get(page).content.decode()


def test_an_account_without_orders_gets_a_message() -> None:
    assert "There are no orders" in viewer_of(make_account()).get(SPEND).content.decode()


def test_the_overview_leads_a_new_merchant_to_the_first_order() -> None:
    account = make_account(balance="0")
    browser = browser_of(make_member(account))
    viewer = viewer_of(account)

    def done() -> list[bool]:
        return [step.done for step in browser.get("/merchant/").context["steps"]]

    assert done() == [False, False, False, False, False]
    assert len(viewer.get("/merchant/").context["steps"]) == 4, "owners need a second factor"
    urls = [step.url for step in browser.get("/merchant/").context["steps"]]
    assert {browser.get(url).status_code for url in urls} == {200}, "each step leads to its page"
    assert urls[3] == "/merchant/wallet/alert/"
    rich = make_merchant()
    owner = make_member(rich.account)
    browser = browser_of(owner)
    assert done() == [True, True, False, False, False]
    buy(rich, make_product(codes=1, price="1.00"))
    assert done() == [True, True, True, False, False]
    browser.post("/merchant/wallet/alert/", {"level": "5"})
    assert done() == [True, True, True, True, False]
    factor = SecondFactor.objects.create(user=owner.user, confirmed=True)
    open_session(browser, owner.user, **{DEVICE_ID_SESSION_KEY: factor.persistent_id})
    assert done() == []


def test_the_overview_shows_balance_spend_and_orders() -> None:
    merchant = make_merchant(balance="100.00")
    buy(merchant, make_product(codes=1, price="1.25"))
    buy_topup(merchant, make_topup_product(price="2.50"))
    date_back(
        buy(merchant, make_product(codes=1, price="3.00")), datetime.now(UTC) - timedelta(days=2)
    )

    answer = viewer_of(merchant.account).get("/merchant/")

    assert answer.context["balance"] == Decimal("93.25")
    assert answer.context["spent_today"] == Decimal("3.75")
    assert answer.context["open_topups"] == 1
    assert len(answer.context["orders"]) == 3
    page = answer.content.decode()
    assert "93.25 USD" in page
    assert '>1<span class="unseen"> Open top-ups</span></a>' in page
    assert "Spend in the last 30 days, in USD" in page
    heights = re.findall('<rect class="bar" x="[^"]+" y="[^"]+" width="16" height="([^"]+)"', page)
    assert heights == ["120", "150"]  # of 4.00 USD, the end of the axis
    shares = page.partition('<ul class="shares"')[2].partition("</ul>")[0]
    assert re.findall("<span>([^<]+)</span>", shares) == ["3.00", "2.50", "1.25"]


def test_the_overview_names_transfers_on_their_way() -> None:
    account = make_account(balance="5")
    owner = make_member(account)
    for number, amount in enumerate((1000, 1500)):
        announce_transfer(
            account=account, amount=Decimal(amount), reference=f"INV {number}", actor=owner.user
        )
    page = browser_of(owner).get("/merchant/").content.decode()
    assert "2,500.00 USD announced and on its way." in page


def test_the_overview_counts_open_cases_and_those_that_staff_answered() -> None:
    merchant, product = make_merchant(balance="100.00"), make_product(codes=4, price="1.00")
    viewer = viewer_of(merchant.account)
    assert "Open cases" not in viewer.get("/merchant/").content.decode()
    cases = [
        make_case(merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"])
        for _ in range(3)
    ]
    stranger = make_merchant()
    make_case(stranger.buy(product_id=product.pk, quantity=1).json()["data"]["reference"])
    link = '<a href="/merchant/cases/?state=open">{}<span class="unseen"> Open cases</span></a>'

    page = viewer.get("/merchant/").content.decode()
    assert link.format(3) in page
    assert "Our staff work on it." in page

    staff = make_staff(superuser=True)
    answer_case(case=cases[0], version=1, actor=staff, text="Please try again.")
    reject_case(case=cases[1], version=1, actor=staff, text="It was used by you.")
    page = viewer.get("/merchant/").content.decode()
    assert link.format(2) in page
    assert "1 answered by our staff." in page


def test_the_overview_works_without_a_wallet() -> None:
    answer = browser_of(make_member(make_account(wallet=False), Role.VIEWER)).get("/merchant/")

    assert "no wallet yet" in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        ("/merchant/reports/", "/merchant/profile/"),
        ("/merchant/company/", "/merchant/people/"),
        ("/merchant/wallet/months/", "/merchant/wallet/"),
    ],
)
def test_the_menu_marks_the_entry_that_leads_to_a_page(path: str, entry: str) -> None:
    page = browser_of(make_member()).get(path).content.decode()
    assert page.count('aria-current="page"') == 1
    assert f'<a href="{entry}" aria-current="page">' in page
