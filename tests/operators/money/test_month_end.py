"""The page about the end of a month, and the links to the next step in lists of money."""

import html
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils.timezone import now

from accounts.models import Company
from core.backoffice.staff_roles import StaffRole
from merchants.models import EmailedReport, Frequency, Role, SentReport
from operators.upkeep.models import ReconcileRun, RunState
from tests.factories import make_account, make_merchant, make_product
from tests.merchants.ledger import BEGIN, book_many, close_days_before
from tests.merchants.people import make_member
from tests.operators.back_office import (
    browser_with,
    make_approval,
    make_close,
    make_staff,
    signed_in,
    staff_with,
    url,
)
from wallets.models import BookingApproval, LedgerEntry
from wallets.services import deposit
from wallets.transfers import announce_transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


def text_of(answer: Any) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_the_page_says_what_is_closed_and_what_is_open() -> None:
    account = make_account(balance="0")
    book_many(account, 3, amount="1000.50", begin=BEGIN, apart=timedelta(days=10))
    close_days_before(date(2026, 2, 1))
    make_approval(account)
    browser = browser_with(StaffRole.FINANCE)

    shown = browser.get("/admin/month-end/?month=2026-01")
    page = text_of(shown)

    assert "End of month: January 2026" in page
    assert "Days closed 31 of 31 done" in page
    assert "Statements issued 1 done" in page
    assert "Statements without company data 1 optional Statements sent" in page
    assert "Statements sent by email 0 optional" in page
    assert "Bookings that wait for approval 0 done" in page
    assert "Announced transfers on their way 0 done" in page
    assert page.count("3,001.50") == 3  # the deposits, the closing balance, the statement
    assert "1 thing is open before January 2026 can be closed." in page
    assert "Last reconcile It has not run yet. open" in page
    assert '/upkeep/reconcilerun/">Last reconcile<' in shown.content.decode()
    assert f'{url(account)}#company">missing' in shown.content.decode()


def test_only_what_began_before_the_end_of_the_month_is_open() -> None:
    account = make_account()
    make_approval(account)
    announce_transfer(account=account, amount=Decimal(1), reference="TR-1", actor=make_staff())
    browser = browser_with(StaffRole.FINANCE)
    this, last = (now().date().replace(day=1) - timedelta(days=days) for days in (0, 1))
    lines = ("Bookings that wait for approval", "Announced transfers on their way")

    for month, words in ((this, "1 open"), (last, "0 done")):
        page = text_of(browser.get(f"/admin/month-end/?month={month:%Y-%m}"))
        assert [f"{line} {words}" in page for line in lines] == [True, True]


def test_each_link_leads_to_the_rows_that_its_number_counts() -> None:
    accounts = [make_account(balance="0") for _ in range(2)]
    for account in accounts:
        book_many(account, 1, amount="1", begin=BEGIN)
    Company.objects.create(account=accounts[0], legal_name="Shop Ltd")
    close_days_before(date(2026, 2, 1))
    make_approval(accounts[0])
    announce_transfer(account=account, amount=Decimal(1), reference="TR-1", actor=make_staff())
    browser = browser_with(StaffRole.FINANCE)

    def link(page: str, name: str) -> str:
        found = re.search(rf'href="([^"]+)">{name}<', page)
        assert found is not None, name
        return html.unescape(found[1])

    page = browser.get("/admin/month-end/?month=2026-01").content.decode()
    for name, expected in (
        ("Statements issued", accounts),
        ("Statements without company data", accounts[1:]),
        ("Statements sent by email", []),
    ):
        shown = browser.get(link(page, name)).context["statements"]
        names = [str(account) for account in accounts if str(account) in str(shown)]
        assert names == [str(account) for account in expected], name
    this = browser.get(f"/admin/month-end/?month={now():%Y-%m}").content.decode()
    for name in ("Bookings that wait for approval", "Announced transfers on their way"):
        assert len(browser.get(link(this, name)).context["cl"].result_list) == 1, name
        assert len(browser.get(link(page, name)).context["cl"].result_list) == 0, name


def test_reports_of_people_without_a_statement_are_not_counted() -> None:
    gone, empty = make_staff(), make_member(make_account(balance="0"), Role.OWNER).user
    for user in (gone, empty):
        report = EmailedReport.objects.create(user=user, kind="statement", every=Frequency.MONTH)
        SentReport.objects.create(report=report, first_day=date(2026, 1, 1))

    page = text_of(browser_with(StaffRole.FINANCE).get("/admin/month-end/?month=2026-01"))

    assert "Statements sent by email 0" in page


def test_the_page_begins_with_the_last_month_that_ended() -> None:
    browser = browser_with(StaffRole.FINANCE)
    last = now().date().replace(day=1) - timedelta(days=1)

    for query in ("", *(f"?month={one}" for one in ("x", "0001-01", "1999-12", "9999-12"))):
        page = text_of(browser.get(f"/admin/month-end/{query}"))
        assert f"End of month: {last:%B %Y}" in page
        assert "No day of this month is closed yet." in page


def test_a_month_without_anything_open_is_complete() -> None:
    account = make_account(balance="0")
    Company.objects.create(account=account, legal_name="Shop Ltd")
    ReconcileRun.objects.create(state=RunState.CLEAN, finished_at=now())
    book_many(account, 3, amount="1", begin=BEGIN, apart=timedelta(days=10))
    close_days_before(date(2026, 2, 1))

    page = text_of(browser_with(StaffRole.FINANCE).get("/admin/month-end/?month=2026-01"))

    assert "January 2026 is complete." in page


def test_a_month_that_is_half_closed_is_open() -> None:
    make_close(make_account(), date(2026, 1, 31))

    page = text_of(browser_with(StaffRole.FINANCE).get("/admin/month-end/?month=2026-01"))

    assert "Days closed 1 of 31 open" in page


def test_a_month_that_runs_has_nothing_to_complete() -> None:
    make_close(make_account(), now().date().replace(day=1))

    page = text_of(browser_with(StaffRole.FINANCE).get(f"/admin/month-end/?month={now():%Y-%m}"))

    assert f"{now():%B %Y} runs until " in page
    assert "The figures include " in page
    assert "can be closed." not in page
    assert "Statements issued 1 Statements" in page
    assert "Balance of the last closed day" in page
    assert "Closing balance 5.00" not in page


def test_only_people_who_see_closes_see_the_page() -> None:
    assert browser_with(StaffRole.SUPPORT).get("/admin/month-end/").status_code == 403


def test_a_list_leads_to_reversing_what_can_be_reversed() -> None:
    merchant = make_merchant(balance="0")
    paid = deposit(account=merchant.account, amount=Decimal(25), actor="a", booking_reference="p")
    merchant.buy(product_id=make_product(price="1", codes=1).pk, quantity=1)
    entry = LedgerEntry.objects.get(pk=paid.pk)
    step = url(entry, "reverse")
    finance = browser_with(StaffRole.FINANCE)

    page = finance.get("/admin/wallets/ledgerentry/").content.decode()
    assert step in page
    assert page.count("Reverse…") == 2  # what it shows, and its name for screen readers
    auditor = signed_in(make_staff("wallets.view_ledgerentry"))
    assert step not in auditor.get("/admin/wallets/ledgerentry/").content.decode()

    deposit(account=merchant.account, amount=Decimal(25), actor="a", booking_reference="other")
    finance.post(step, {"reason": "a mistake"})
    assert LedgerEntry.objects.filter(booking_reference=entry.reversal_reference).exists()
    assert step not in finance.get("/admin/wallets/ledgerentry/").content.decode()


def test_a_list_leads_to_deciding_a_booking() -> None:
    make_approval(make_account())
    booking = BookingApproval.objects.get()
    pages = {
        "other": browser_with(StaffRole.FINANCE),
        "maker": signed_in(booking.asked_by),
        "reader": signed_in(make_staff("wallets.view_bookingapproval")),
    }
    booking.asked_by.groups.add(*staff_with(StaffRole.FINANCE).groups.all())

    found = {}
    for name, browser in pages.items():
        page = browser.get("/admin/wallets/bookingapproval/").content.decode()
        steps = ("approve", "reject")
        found[name] = [one for one in steps if f"/{booking.pk}/{one}" in page]

    assert found == {"other": ["approve", "reject"], "maker": ["reject"], "reader": []}


def test_the_page_names_who_can_enter_company_data() -> None:
    book_many(make_account(balance="0"), 3, amount="1.00", begin=BEGIN, apart=timedelta(days=10))
    close_days_before(date(2026, 2, 1))
    path, manager = "/admin/month-end/?month=2026-01", staff_with(StaffRole.MERCHANT_MANAGER)

    words = text_of(browser_with(StaffRole.FINANCE).get(path))
    assert f"These people can enter the missing company data: {manager.username}." in words
    seller = signed_in(make_staff("wallets.view_dailyclose", "accounts.change_account"))
    assert "These people" not in text_of(seller.get(path))


def test_the_page_leads_to_each_statement() -> None:
    account = make_account(balance="0")
    book_many(account, 3, amount="1000.50", begin=BEGIN, apart=timedelta(days=10))
    close_days_before(date(2026, 2, 1))

    page = browser_with(StaffRole.FINANCE).get("/admin/month-end/?month=2026-01").content.decode()

    words = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    line = f"2026-01-{account.pk:04} missing not sent 3,001.50 USD PDF · CSV · XLSX"
    assert f"{account.name} {line}" in words
    for format in ("pdf", "csv", "xlsx"):
        assert f"/admin/wallets/wallet/{account.pk}/statement/2026-01/{format}/" in page


def test_only_people_who_see_closes_of_wallets_see_the_statement_of_each_account() -> None:
    account = make_account(balance="0")
    book_many(account, 3, amount="1000.50", begin=BEGIN, apart=timedelta(days=10))
    close_days_before(date(2026, 2, 1))
    address, closes = "/admin/month-end/?month=2026-01", "wallets.view_dailyclose"

    page = signed_in(make_staff(closes)).get(address).content.decode()
    assert "Statements issued" in page
    assert account.name not in page

    page = signed_in(make_staff(closes, "wallets.view_walletclose")).get(address).content.decode()
    assert account.name in page
