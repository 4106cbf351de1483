"""Reports come by email once for each period, and only to people who may have them."""

import re
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import openpyxl
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pypdf import PdfReader

from accounts.models import Account, Preferences
from audit.models import AuditAction, AuditEntry
from merchants.email import reports
from merchants.email.reports import choose_report, last_period, sweep_reports
from merchants.email.sending import sweep_emails
from merchants.models import Email, EmailedReport, Frequency, Role, SentReport
from operators.frame.exports import EXPORT
from tests.concurrency.racing import race
from tests.factories import make_account
from tests.merchants.ledger import BEGIN, book_many, close_days_before
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

PAGE = "/merchant/reports/"
LATER = datetime(2026, 3, 1, 4, tzinfo=UTC)


@pytest.fixture(autouse=True)
def march(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the first of March 2026, early in the morning."""
    monkeypatch.setattr(reports, "database_now", lambda: LATER)


@pytest.fixture
def account() -> Account:
    account = make_account(balance="0")
    book_many(account, 40, amount="12.34", begin=BEGIN, apart=timedelta(days=1))
    close_days_before(LATER.date())
    return account


@pytest.fixture
def owner(account: Account) -> User:
    return make_member(account, Role.OWNER).user


def chosen(user: User, kind: str, every: Frequency) -> EmailedReport:
    """A report that the person chose in January."""
    report = choose_report(user=user, kind=kind, every=every)
    EmailedReport.objects.filter(pk=report.pk).update(created_at=BEGIN)
    return report


def files() -> list[Any]:
    """The attached files of the emails that are sent now."""
    mail.outbox.clear()
    sweep_emails()
    return [one.attachments for one in mail.outbox]


@pytest.mark.parametrize(
    ("every", "first", "end"),
    [
        (Frequency.DAY, "2026-02-28", "2026-03-01"),
        (Frequency.WEEK, "2026-02-16", "2026-02-23"),
        (Frequency.MONTH, "2026-02-01", "2026-03-01"),
    ],
)
def test_the_last_period_is_the_newest_that_ended(every: str, first: str, end: str) -> None:
    assert [day.isoformat() for day in last_period(every, LATER)] == [first, end]


def test_a_statement_comes_once_a_month_as_pdf(owner: User) -> None:
    chosen(owner, "statement", Frequency.MONTH)

    assert [sweep_reports(), sweep_reports()] == [1, 0]
    (((name, content, _),),) = files()

    assert name == "statement-2026-02.pdf"
    text = "".join(page.extract_text() for page in PdfReader(BytesIO(content)).pages)
    assert "Closing balance, 2026-02-28" in text
    assert mail.outbox[0].to == [owner.email]
    assert mail.outbox[0].subject == "Statement, 2026-02-01 to 2026-02-28"


def test_a_report_is_not_sent_for_periods_before_it_was_chosen(owner: User) -> None:
    choose_report(user=owner, kind="statement", every=Frequency.MONTH)

    assert sweep_reports() == 0


def test_nobody_receives_a_report_without_the_right(owner: User, account: Account) -> None:
    staff = make_staff("wallets.view_dailyclose", EXPORT)
    User.objects.filter(pk=staff.pk).update(email="finance@staff.example")
    chosen(staff, "closes", Frequency.MONTH)
    chosen(owner, "closes", Frequency.MONTH)
    assert sweep_reports() == 1

    staff.user_permissions.clear()
    assert files() == [[]]
    assert "may no longer see it" in str(mail.outbox[0].body)
    chosen(staff, "closes", Frequency.DAY)
    assert sweep_reports() == 0


def test_a_member_who_left_receives_nothing(owner: User) -> None:
    chosen(owner, "orders", Frequency.MONTH)
    User.objects.filter(pk=owner.pk).update(is_active=False)

    assert sweep_reports() == 0


def test_staff_receive_the_closes_of_the_period(account: Account) -> None:
    staff = make_staff("wallets.view_dailyclose", EXPORT)
    User.objects.filter(pk=staff.pk).update(email="finance@staff.example")
    chosen(staff, "closes", Frequency.MONTH)

    sweep_reports()
    (((name, content, _),),) = files()

    assert name == "closes-2026-02-01.xlsx"
    sheet = openpyxl.load_workbook(BytesIO(content)).worksheets[0]
    assert sheet.max_row == 1 + 28


def test_a_report_is_in_the_language_and_time_zone_of_its_reader(
    owner: User, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Preferences.objects.create(user=owner, language="de", time_zone="Asia/Tokyo")
    chosen(owner, "statement", Frequency.MONTH)
    sweep_reports()
    (((_, pdf, _),),) = files()
    monkeypatch.setattr(reports, "database_now", lambda: BEGIN + timedelta(days=20))
    chosen(owner, "statement", Frequency.WEEK)
    sweep_reports()
    (((_, lines, _),),) = files()

    text = "".join(page.extract_text() for page in PdfReader(BytesIO(pdf)).pages)
    assert "Kontoauszug" in text
    assert "+09:00" in (lines if isinstance(lines, str) else lines.decode())


def test_staff_without_the_right_to_export_receive_nothing(account: Account) -> None:
    staff = make_staff("wallets.view_dailyclose")
    User.objects.filter(pk=staff.pk).update(email="finance@staff.example")
    chosen(staff, "closes", Frequency.MONTH)

    assert sweep_reports() == 0


def test_each_file_is_in_the_audit_trail(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen(owner, "statement", Frequency.MONTH)
    sweep_reports()
    files()

    exported = AuditEntry.objects.filter(action=AuditAction.EXPORTED)
    entry = exported.get()
    assert (entry.actor, entry.reference) == (owner, "statement-2026-02.pdf")
    assert entry.object_id == str(owner.pk)

    monkeypatch.setattr(reports, "MOST_BYTES", 10)
    chosen(owner, "orders", Frequency.MONTH)
    sweep_reports()
    assert files() == [[]]
    assert exported.count() == 1


def test_a_late_email_brings_no_file_to_an_old_address(owner: User) -> None:
    chosen(owner, "statement", Frequency.MONTH)
    sweep_reports()
    old = owner.email
    User.objects.filter(pk=owner.pk).update(email="new@shop.example")

    assert files() == [[]]
    assert mail.outbox[0].to == [old]


def test_a_large_file_is_not_attached(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST_BYTES", 10)
    chosen(owner, "statement", Frequency.MONTH)
    sweep_reports()

    assert files() == [[]]
    assert "too large" in str(mail.outbox[0].body)


def test_members_choose_and_end_their_own_reports(owner: User) -> None:
    browser = browser_of(owner)
    stranger = browser_of(make_member().user)

    browser.post(PAGE, {"kind": "statement", "every": "month"})
    assert browser.post(PAGE, {"kind": "closes", "every": "month"}).status_code == 422
    report = EmailedReport.objects.get()
    assert report.user == owner
    assert stranger.post(f"{PAGE}{report.pk}/end/").status_code == 404
    browser.post(f"{PAGE}{report.pk}/end/")

    assert not EmailedReport.objects.exists()


def test_the_page_of_months_leads_to_a_monthly_report(owner: User) -> None:
    browser = browser_of(owner)
    (query,) = re.findall(
        rf'href="{PAGE}(.*?)"',
        browser.get("/merchant/wallet/months/").content.decode(),
    )

    page = browser.get(f"{PAGE}{query}").content.decode()

    assert '<option value="month" selected>' in page


def test_staff_choose_among_the_reports_that_they_may_have() -> None:
    verbs = [f"merchants.{verb}_emailedreport" for verb in ("view", "add", "delete")]
    staff = make_staff("wallets.view_dailyclose", EXPORT, *verbs)
    browser: Client = signed_in(staff)
    add = "/admin/merchants/emailedreport/add/"

    assert browser.post(add, {"kind": "margins", "every": "week"}).status_code == 200
    browser.post(add, {"kind": "closes", "every": "week"})

    report = EmailedReport.objects.get()
    assert (report.user, report.kind) == (staff, "closes")
    assert signed_in().get(url(report)).status_code == 302
    browser.post(url(report, "delete"), {"post": "yes"})
    assert not EmailedReport.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_write_one_email(owner: User) -> None:
    chosen(owner, "orders", Frequency.MONTH)

    assert sorted(race([sweep_reports] * 4)) == [0, 0, 0, 1]

    assert SentReport.objects.count() == 1
    assert Email.objects.filter(kind="report").count() == 1
