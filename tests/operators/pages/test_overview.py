"""The overview shows sales, stock and due refunds, each to those who may see it."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounts.models import OwnCompany, SecondFactor
from catalogue.models import Shelf
from catalogue.stock.holds import hold_codes
from core.backoffice.staff_roles import StaffRole
from core.formats import local_day
from figures.margin_counting import count_margins
from figures.models import DailyMarginSum, DailySales
from figures.sales import today
from figures.sales_counting import count_sales
from operators.admin.checklist import FILES
from operators.admin.work import WORK as WORK_LINES
from operators.staff.people import ask_or_reset_factor
from operators.upkeep.models import Copy, CopyKind, Heartbeat, HeartbeatKind
from orders.remedies.credits import credit_order
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_batch,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
    new_booking_reference,
    own_shelf,
)
from tests.merchants.people import make_member
from tests.operators.back_office import (
    World,
    list_url,
    make_approval,
    make_staff,
    signed_in,
    staff_with,
    url,
)
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment
from wallets.models import BankDetails, BookingApproval

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

INDEX = reverse("admin:index")


def of_role(role: StaffRole) -> Client:
    staff = make_staff()
    staff.groups.add(Group.objects.get(name=role.value))
    return signed_in(staff)


def make_heartbeats() -> None:
    """The scheduler and a worker are alive."""
    for kind in HeartbeatKind:
        Heartbeat.objects.create(kind=kind, host="one")


def text_of(browser: Client, address: str = INDEX) -> str:
    """What the page says, with single spaces."""
    page = browser.get(address).content.decode()
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_sales_are_shown_with_the_period_before() -> None:
    product = make_product(price="1250.50", codes=1, name="Large card")
    merchant = make_merchant(balance="5000")
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    browser = signed_in()
    make_heartbeats()
    assert "No sales in the last 60 days." in text_of(browser)
    count_sales()

    page = text_of(browser, f"{INDEX}?days=1")

    assert "Today 1,250.50 USD 1 order" in page
    assert "0.00 USD all of yesterday" in page
    assert "By product, today, in USD" in page
    assert "Large card 1 1,250.50 0.00 from 0" in page
    assert f"{merchant.client.account} 1 1,250.50 0.00 from 0" in page


def test_amounts_of_several_currencies_have_it_beside_them() -> None:
    for currency in ("USD", "EUR"):
        product = make_product(price="1250.50", codes=1, name=f"{currency} card", currency=currency)
        merchant = Merchant(make_client(make_account(balance="5000", currency=currency)))
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    count_sales()
    browser = signed_in()

    page = text_of(browser)

    assert "By product, 7 days Product" in page
    for currency in ("USD", "EUR"):
        assert f"{currency} card 1 1,250.50 {currency} 0.00 {currency}" in page
    browser.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    assert "Nach Produkt, heute" in text_of(browser, f"{INDEX}?days=1")


def test_names_lead_only_where_the_reader_may_go() -> None:
    product = make_product(price="1.00", codes=1, name="Large card")
    merchant = make_merchant(balance="5")
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    count_sales()
    browser = signed_in(make_staff("figures.view_dailysales", "accounts.view_account"))

    page = browser.get(INDEX).content.decode()

    assert "Large card" in page
    links = set(re.findall(r'href="([^"]+/change/)"', page))
    assert links == {url(merchant.account)}
    assert browser.get(url(product)).status_code == 403


def test_overview_account_and_margins_show_the_same_net_sales() -> None:
    product = make_product(price="1250.50", codes=1, name="Large card")
    merchant = make_merchant(balance="5000")
    order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
    failed = buy_topup(merchant, make_topup_product(price="4.99"))
    carry_out_refund(move_now(reference=failed, move=Move.REJECT, operator=make_operator()).pk)
    credit_order(
        reference=order["reference"],
        amount=Decimal("0.25"),
        note="broken",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )
    count_sales(), count_margins()
    browser, day = signed_in(), today().isoformat()

    for page in (text_of(browser), text_of(browser, url(merchant.account))):
        assert "Today 1,250.25 USD 2 orders" in page
    margins = text_of(browser, reverse("margins", query={"since": day, "until": day}))
    assert "Large card 1 1,250.50 0.25 1,250.25" in margins
    assert "All in USD 2 1,255.49 5.24 1,250.25" in margins


def test_more_paid_back_than_sold_is_nothing_to_compare_with() -> None:
    merchant = make_merchant()
    for price in ("3.00", "1.00"):
        merchant.buy(product_id=make_product(price=price, codes=1).pk, quantity=1)
    count_sales()
    row = DailySales.objects.get(amount=3)
    for days in (1, 8):
        day = today() - timedelta(days=days)
        DailyMarginSum.objects.create(
            day=day, currency="USD", shelf_id=row.shelf_id, quantity=0, sold=0, paid_back=5
        )

    page = text_of(signed_in())

    assert "7 days -1.00 USD 2 orders -5.00 USD the 7 days before" in page
    assert "Today 4.00 USD 2 orders -5.00 USD all of yesterday" in page


def test_a_missing_worker_needs_attention() -> None:
    manager, finance = of_role(StaffRole.ADMINISTRATOR), of_role(StaffRole.FINANCE)
    assert "No sign of life from the scheduler and the worker" in text_of(manager)
    assert "No sign of life" not in text_of(finance)
    assert "new orders are not counted" in text_of(finance)
    make_heartbeats()
    assert "No sign of life" not in text_of(manager)
    assert "not counted" not in text_of(finance)


@pytest.mark.parametrize("days", ["7", "30"])
def test_a_card_leads_to_the_tables_of_its_period(days: str) -> None:
    merchant = make_merchant()
    merchant.buy(product_id=make_product(codes=1).pk, quantity=1)
    count_sales()

    assert f"By account, {days} days" in text_of(signed_in(), f"{INDEX}?days={days}")
    assert "By account, 7 days" in text_of(signed_in(), f"{INDEX}?days=9%00")


def test_today_is_not_compared_with_a_whole_day_in_percent() -> None:
    merchant = make_merchant()
    product = make_product(price="2.00", codes=3)
    for _ in range(2):
        merchant.buy(product_id=product.pk, quantity=1)
    count_sales()
    sold = DailySales.objects.get()
    for days, amount in ((1, "8.00"), (30, "1.00")):
        sold.pk, sold.day, sold.amount = None, today() - timedelta(days=days), Decimal(amount)
        sold.save(force_insert=True)

    page = text_of(signed_in())

    assert "Today 4.00 USD 2 orders 8.00 USD all of yesterday" in page
    assert "30 days 12.00 USD 4 orders +1,100 % 1.00 USD the 30 days before" in page


def test_small_products_are_added_up() -> None:
    merchant = make_merchant(balance="1000")
    for number in range(10):
        product = make_product(price=str(number + 1), codes=1)
        merchant.buy(product_id=product.pk, quantity=1)
    count_sales()

    assert "2 others 2 3.00 0.00" in text_of(signed_in())


@pytest.mark.parametrize(
    ("role", "sales", "stock", "refunds"),
    [
        (StaffRole.FINANCE, True, False, True),
        (StaffRole.STOCK_KEEPER, False, True, False),
        (StaffRole.ADMINISTRATOR, False, True, False),
        (StaffRole.MERCHANT_MANAGER, True, True, False),
        (StaffRole.SUPPORT, False, True, True),
        (StaffRole.AUDITOR, True, True, True),
    ],
)
def test_each_role_sees_its_figures(
    role: StaffRole, sales: bool, stock: bool, refunds: bool
) -> None:
    merchant = make_merchant()
    merchant.buy(product_id=make_product(price="7.77", codes=1).pk, quantity=1)
    rejected(merchant)
    count_sales()

    page = text_of(of_role(role))

    assert ("7.77" in page) is sales
    assert ("sold out" in page) is stock
    assert ("1 refund due" in page) is refunds


WORK = {
    StaffRole.ADMINISTRATOR: (
        "members of staff have never signed in",
        "Last reconcile: findings",
    ),
    StaffRole.MERCHANT_MANAGER: ("asks for: owner",),
    StaffRole.SUPPORT: ("1 open top-up", "asks for: owner"),
    StaffRole.STOCK_KEEPER: (
        "1 hold of codes to release or void",
        "Stock that runs out first",
    ),
    StaffRole.FINANCE: (
        "1 open top-up",
        "1 booking waits for approval",
        "1 announced transfer to look for",
        "1 lost purchase to settle",
        "Last reconcile: findings",
    ),
    StaffRole.AUDITOR: (
        "1 open top-up",
        "1 booking waits for approval",
        "Last reconcile: findings",
    ),
}


def test_the_first_page_of_each_role_shows_its_work() -> None:
    World().grow(1)
    owner = make_member()
    SecondFactor.objects.create(user=owner.user)
    ask_or_reset_factor(user=owner.user, actor=make_staff())
    for role, lines in WORK.items():
        page = text_of(of_role(role))
        assert "Your work at a glance" in page or "Needs attention" in page, role
        assert [line for line in lines if line not in page] == [], role
        assert "audit entr" not in page, f"{role}: nobody must do anything about an entry"
        assert not re.search(r"\b0 (members|invitations|imports|open|holds|lost)", page), role
    for role in (StaffRole.OPERATOR, StaffRole.SENIOR_OPERATOR):
        browser = of_role(role)
        assert browser.get(INDEX)["Location"] == list_url(Fulfilment)
        assert "1 pending" in text_of(browser, list_url(Fulfilment))


def test_administrators_see_what_is_left_before_they_sell_until_it_is_done(
    settings: Settings,
) -> None:
    settings.EMAIL_BACKEND = FILES
    first, second = make_staff(superuser=True), make_staff(superuser=True)
    User.objects.filter(pk=first.pk).update(last_login=timezone.now())
    page = text_of(signed_in(first))
    assert "0 of 6 steps are done" in page
    assert "Before you sell with real money" not in text_of(of_role(StaffRole.FINANCE))

    OwnCompany.objects.create(legal_name="Example GmbH")
    BankDetails.objects.create(currency="USD", details="IBAN")
    Copy.objects.create(kind=CopyKind.BACKUP, host="db")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    make_account()
    page = text_of(signed_in(first))
    assert "5 of 6 steps are done" in page
    assert page.index("Invite a second administrator") < page.index("Done: Enter your company")
    User.objects.filter(pk=second.pk).update(last_login=timezone.now())
    assert "Before you sell with real money" not in text_of(signed_in(first))


def test_each_step_before_selling_leads_to_a_page() -> None:
    browser = signed_in()
    steps = browser.get(INDEX).context["checklist"]["steps"]
    OwnCompany.objects.create(legal_name="Example GmbH")
    make_staff(superuser=True)
    User.objects.filter(is_superuser=True).update(last_login=timezone.now())
    for title in ("Enter your company", "Invite a second administrator"):
        page = browser.get(INDEX).content.decode()
        done = re.search(rf'Done: <a class="text-link" href="([^"]*)">{title}</a>', page)
        assert done
        assert browser.get(done[1], follow=True).status_code == 200
    assert f'Done: <a class="text-link" href="{list_url(User)}">' in page
    urls = [step["url"] for step in steps if step["url"]]
    assert len(urls) == len(steps)
    assert [url for url in urls if browser.get(url, follow=True).status_code != 200] == []
    assert not [step for step in steps if "docs/" in step["why"]]  # nobody can click a file
    invite = next(step["url"] for step in steps if "second administrator" in step["title"])
    form = browser.get(invite).context["adminform"].form
    (role,) = form["groups"].value()
    assert Group.objects.get(pk=role).name == StaffRole.ADMINISTRATOR
    Group.objects.get(pk=role).delete()
    assert "Before you sell with real money" in text_of(browser)


def test_the_links_of_the_work_lead_to_what_was_counted() -> None:
    World().grow(1)
    reader = make_staff(superuser=True)
    browser = signed_in(reader)
    page = browser.get(INDEX)
    lines = [*page.context["approvals"], *page.context["work"]]
    something = [work for work in WORK_LINES if work.rows(reader).exists()]
    assert len(lines) == len(something) + 1 > len(WORK_LINES) / 2  # and the last reconcile
    for line in lines:
        assert line["url"].replace("&", "&amp;") in page.text
        assert browser.get(line["url"]).status_code == 200, line


def test_what_waits_for_approval_needs_attention_of_those_who_may_approve() -> None:
    maker = staff_with(StaffRole.FINANCE)
    make_approval(make_account(), asked_by=maker)
    finance, auditor = of_role(StaffRole.FINANCE), of_role(StaffRole.AUDITOR)
    others, _, own = text_of(finance).partition("Your work at a glance")
    assert "Needs attention 1 booking waits for approval" in others
    assert "waits for approval" not in own
    assert "Your work at a glance 1 booking waits for approval" in text_of(auditor)
    assert "waits for approval" not in text_of(signed_in(maker))
    waiting = list_url(BookingApproval, state="waiting")
    assert waiting in {line["url"] for line in finance.get(INDEX).context["approvals"]}


@pytest.mark.menu
def test_no_menu_shows_more_than_twenty_links_and_each_begins_with_its_own_work() -> None:
    first = {}
    for role in [*StaffRole, None]:
        browser = signed_in() if role is None else of_role(role)
        menu = browser.get(reverse("time_zone")).context["sidebar_navigation"]
        unfolded = [group for group in menu if not group["collapsible"]]
        assert 0 < sum(len(group["items"]) for group in unfolded) <= 20, role
        first[role] = next(group["title"] for group in menu if group["title"])
    assert first == {
        StaffRole.ADMINISTRATOR: "Merchants",
        StaffRole.MERCHANT_MANAGER: "Merchants",
        StaffRole.SUPPORT: "Orders",
        StaffRole.STOCK_KEEPER: "Catalogue",
        StaffRole.FINANCE: "Money",
        StaffRole.OPERATOR: "Top-ups",
        StaffRole.SENIOR_OPERATOR: "Top-ups",
        StaffRole.AUDITOR: "Orders",
        None: "Orders",
    }


def rejected(merchant: object) -> str:
    reference = buy_topup(make_merchant(), make_topup_product())
    move_now(reference=reference, move=Move.REJECT, operator=make_operator())
    return reference


def test_refunds_due_lead_to_their_list() -> None:
    reference = rejected(make_merchant())
    other = buy_topup(make_merchant())
    browser = signed_in()
    (address,) = re.findall(r'href="([^"]*)">1 refund due', browser.get(INDEX).content.decode())

    shown = browser.get(address).content.decode()

    assert reference in shown
    assert other not in shown


def test_a_product_sold_by_its_variations_is_not_sold_out() -> None:
    product = make_product(price="5", name="Only by variations")
    make_variation(product, price="6", codes=20)
    browser = signed_in()
    sold_out = list_url(Shelf, stock="none")

    page = text_of(browser)
    assert "sold out" not in page
    assert "without codes" not in page
    assert "Only by variations" not in browser.get(sold_out).content.decode()


def test_a_product_that_sold_codes_itself_is_sold_out() -> None:
    product = make_product(price="5", codes=1, name="Sold both ways")
    make_variation(product, price="6", codes=20)
    make_merchant().buy(product_id=product.pk, quantity=1)
    count_sales()
    browser = signed_in()

    assert "1 shelf on sale without codes" in text_of(browser)
    assert "Sold both ways" in browser.get(list_url(Shelf, stock="none")).content.decode()


def test_a_shelf_without_a_price_or_switched_off_is_not_sold_out() -> None:
    make_product(price=None)
    make_product(price="5", active=False)

    page = text_of(signed_in())
    assert "sold out" not in page
    assert "without codes" not in page


def test_days_left_are_counted_from_the_week() -> None:
    product = make_product(price="1", codes=30, name="Runs out")
    quiet = make_product(price="1", codes=30, name="Sells nothing")
    sold_out = make_product(price="1", codes=1, name="Sold out")
    make_product(price="1", name="New")
    merchant = make_merchant(balance="1000")
    merchant.buy(product_id=sold_out.pk, quantity=1)
    for _ in range(14):
        merchant.buy(product_id=product.pk, quantity=1)
    count_sales()

    page = text_of(signed_in())

    # 16 codes are left, and 14 were sold in a little more than seven days.
    found = re.search(r"Runs out 16 14 (8|9) days", page)
    assert found, page[:5000]
    assert "Sells nothing" not in page
    assert page.index("Sold out 0 1 sold out") < page.index("Runs out 16")
    assert "New 0 0 no codes yet" in page
    assert own_shelf(quiet).available_stock == 30


def test_stock_that_expires_before_it_is_sold_out_says_when() -> None:
    """15 codes last a week or longer."""
    today, merchant = datetime.now(UTC).date(), make_merchant(balance="1000")
    soon, late = (make_product(price="1", name=name) for name in ("Ends soon", "Ends late"))
    for product, days in ((soon, 3), (late, 30)):
        make_batch(own_shelf(product), 30, expires_on=today + timedelta(days=days))
        for _ in range(14):
            merchant.buy(product_id=product.pk, quantity=1)
    count_sales()

    page, day = text_of(signed_in()), local_day(today + timedelta(days=3))

    assert re.search(rf"Ends soon 16 14 . days, but the first codes expire on {day}", page)
    spare = make_batch(own_shelf(soon), 1, expires_on=today)
    hold_codes(codes=spare.its_codes, reason="wrong file", held_by="test")
    again = text_of(signed_in())
    assert re.search(rf"Ends soon 16 14 . days, but the first codes expire on {day}", again)
    assert re.search(r"Ends late 16 14 . days (?!, but)", page)
