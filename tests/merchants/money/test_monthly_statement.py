"""The statement of a month agrees with the ledger and the daily closes, to the cent."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from django.utils import timezone, translation
from openpyxl import load_workbook
from pypdf import PdfReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfgen.canvas import Canvas

from accounts.companies import country_choices, save_company
from accounts.models import Account, OwnCompany
from accounts.preferences.time_zones import IN_SESSION, LANGUAGE_IN_SESSION
from merchants.models import Role
from merchants.money import statement_pdf
from merchants.money.months import Month, closed_months, find_month
from merchants.money.statement import COLUMNS
from tests.concurrency.racing import without_triggers
from tests.factories import make_account
from tests.merchants.ledger import BEGIN, book_many, close_days_before
from tests.merchants.people import browser_of, make_member
from wallets.models import BankDetails, LedgerEntry, WalletClose

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

MONTHS = "/merchant/wallet/months/"


@pytest.fixture
def account() -> Account:
    """An account whose entries are in January and February."""
    account = make_account(balance="0")
    Account.objects.filter(pk=account.pk).update(name="Łódź & Δέλτα, 北京")
    book_many(account, 40, amount="12.3456", begin=BEGIN, apart=timedelta(days=1))
    close_days_before(date(2026, 3, 1))
    return account


@pytest.fixture
def browser(account: Account) -> Client:
    return browser_of(make_member(account, Role.VIEWER).user)


ISSUER = {
    "legal_name": "Voucher Operations GmbH",
    "address": "Lange Straße 12\n10115 Berlin",
    "tax_number": "DE 123",
    "billing_email": "billing@voucher.example",
}
RECIPIENT = {"legal_name": "Games Ltd", "country": "United Kingdom", "contact": "Jane Bloggs"}


def enter_companies(account: Account) -> None:
    OwnCompany.objects.create(**ISSUER, footer="Acting for itself")
    BankDetails.objects.create(currency=account.currency, details="IBAN 1")
    save_company(account=account, data=RECIPIENT, actor=make_member(account).user)


def account_name(account: Account) -> str:
    return Account.objects.get(pk=account.pk).name


def heading_in(browser: Client, format: str) -> str:
    """The text of the file, with lines of an address as in tables."""
    answer: Any = browser.get(f"{MONTHS}2026-01.{format}")
    data = answer.content
    if format == "pdf":
        return text_of(data).replace("Lange Straße 12\n", "Lange Straße 12, ")
    if format == "csv":
        return str(data.decode())
    sheets = load_workbook(io.BytesIO(data)).worksheets
    rows = [row for sheet in sheets for row in sheet.iter_rows(values_only=True)]
    return "\n".join(str(cell) for row in rows for cell in row if cell is not None)


def text_of(data: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(data)).pages)


def money_after(words: str, text: str) -> Decimal:
    found = re.search(rf"{words}[^\n]*?\s(-?[\d.]+)(?:\n|$)", text)
    assert found, (words, text)
    return Decimal(found[1])


def balance_before(account: Account, moment: datetime) -> Decimal:
    entries = LedgerEntry.objects.filter(wallet=account.pk, created_at__lt=moment)
    return entries.aggregate(sum=Sum("amount"))["sum"] or Decimal(0)


def test_the_text_of_the_pdf_agrees_with_the_ledger(account: Account, browser: Client) -> None:
    begin, end = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC)

    answer = browser.get(f"{MONTHS}2026-02.pdf")
    text = text_of(answer.content)

    assert answer["Content-Type"] == "application/pdf"
    assert money_after("Opening balance, 2026-02-01", text) == balance_before(account, begin)
    assert money_after("Closing balance, 2026-02-28", text) == balance_before(account, end)
    assert money_after(r"Deposits\s+9", text) == 9 * Decimal("12.3456")
    entries = LedgerEntry.objects.filter(wallet=account.pk, created_at__gte=begin)
    for entry in entries:
        line = f"{entry.created_at:%Y-%m-%d %H:%M:%S}"
        assert line in text
    assert text.count("12.3456") == 2 * entries.count()  # of each day, and of its entry
    assert "Łódź & Δέλτα, " in text
    assert "北京" in text


def test_a_statement_counts_and_adds_up_each_kind_of_entry(
    account: Account, browser: Client
) -> None:
    """January has a deposit a day."""
    total = 31 * Decimal("12.3456")
    expected = [("Deposits", 31, total), ("All entries", 31, total), ("Replacements", 0, "0.00")]

    pdf, book = (heading_in(browser, format) for format in ("pdf", "xlsx"))

    for name, number, amount in expected:
        assert re.search(rf"{name}\s+{number}\s+{amount}\n", pdf), name
        assert f"Summary\n{name}\n{float(str(amount))}\n" in book
        assert f"Number of entries\n{name}\n{number}\n" in book


def test_a_statement_names_the_companies_as_they_were_at_its_close(
    account: Account, browser: Client
) -> None:
    first = closed_months(account)[-1].statement(account)
    assert (first.issuer, first.recipient) == ({}, {"name": account_name(account)})
    enter_companies(account)
    without_triggers(
        "DELETE FROM wallets_monthlystatement; DELETE FROM wallets_walletclose;"
        " DELETE FROM wallets_dailyclose"
    )
    close_days_before(date(2026, 3, 1))
    before = {name: heading_in(browser, name) for name in ("pdf", "csv", "xlsx")}
    for text in before.values():
        for value in (*ISSUER.values(), *RECIPIENT.values(), f"2026-01-{account.pk:04}"):
            assert value.replace("\n", ", ") in text
        assert str(timezone.now().astimezone(UTC).date()) in text
    assert "no tax" in before["pdf"]
    assert "no tax" in before["xlsx"]
    assert "Acting for itself" in before["pdf"]
    assert "IBAN 1" in before["pdf"]
    assert "Contact: Jane Bloggs" in before["pdf"]

    OwnCompany.objects.update(legal_name="Renamed", footer="Renamed")
    BankDetails.objects.update(details="Renamed")
    save_company(account=account, data={"legal_name": "Renamed"}, actor=make_member(account).user)
    Account.objects.filter(pk=account.pk).update(name="Renamed")

    assert {name: heading_in(browser, name) for name in before} == before


def issue_with_companies(account: Account) -> None:
    """Issues the statements again, with the operator's company and one in the United Kingdom."""
    enter_companies(account)
    save_company(account=account, data={"country": "GB"}, actor=make_member(account).user)
    without_triggers(
        "DELETE FROM wallets_monthlystatement; DELETE FROM wallets_walletclose;"
        " DELETE FROM wallets_dailyclose"
    )
    close_days_before(date(2026, 3, 1))


def test_a_statement_names_the_country_in_the_language_of_its_reader(
    account: Account, browser: Client
) -> None:
    issue_with_companies(account)
    for language, name in (("de", "Vereinigtes Königreich"), ("en", "United Kingdom")):
        browser.defaults["HTTP_ACCEPT_LANGUAGE"] = language
        for format in ("pdf", "xlsx"):
            assert name in heading_in(browser, format)


def test_countries_are_sorted_without_the_marks_of_letters() -> None:
    for language, marked, plain in (("de", "Ägypten", "Albanien"), ("en", "Åland", "Albania")):
        with translation.override(language):
            names = [name for _, name in country_choices()]
        (first,) = (name for name in names if name.startswith(marked))
        assert names.index("Afghanistan") < names.index(first) < names.index(plain)


def test_every_page_has_its_number_and_the_number_of_pages(
    account: Account, browser: Client
) -> None:
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()
    pages = PdfReader(io.BytesIO(browser.get(f"{MONTHS}2026-01.pdf").content)).pages
    texts = [page.extract_text() for page in pages]

    assert len(texts) == 3
    for number, text in enumerate(texts, 1):
        assert f"Seite {number} von 3" in text
        assert text.count("Seite") == 1
    assert "12,3456" in texts[2]
    assert "31.01.2026" in texts[2]


def test_long_texts_stay_apart_and_on_the_page(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the longest names, an old address of many lines, and letters of either font."""
    month, boxes = closed_months(account)[-1], list[tuple[float, float, float, str]]()
    issued = month.statement(account)
    draw, end_page, end_footer = Canvas.drawString, Canvas.showPage, Canvas.endForm

    def note(canvas: Canvas, x: float, y: float, text: str, **options: Any) -> None:
        width = pdfmetrics.stringWidth(text, canvas._fontname, canvas._fontsize)
        boxes.append((x, y, x + width, text))
        draw(canvas, x, y, text, **options)

    def check(canvas: Canvas, end: Callable[[Canvas], None]) -> None:
        for left, y, right, text in boxes:
            assert left >= 40, text
            assert right <= 595 - 40, text
            assert y >= 45, text
        for one, other in combinations(sorted(boxes), 2):
            apart = other[0] >= one[2] - 0.1 or abs(one[1] - other[1]) >= 7
            assert apart, (one, other)
        boxes.clear()
        end(canvas)

    monkeypatch.setattr(Month, "statement", lambda *_: issued)
    monkeypatch.setattr(Canvas, "drawString", note)
    monkeypatch.setattr(Canvas, "showPage", lambda canvas: check(canvas, end_page))
    monkeypatch.setattr(Canvas, "endForm", lambda canvas: check(canvas, end_footer))
    for letters in ("W", "Wide words ", "北"):
        name, address = (letters * 200)[:200], (letters * 400)[:400]
        company = {**dict.fromkeys(("legal_name", "contact", "billing_email", "name"), name)}
        for lines in (address, "\n".join(letters[0] * 200)):
            issued.issuer = {**company, "address": lines, "footer": address}
            issued.recipient = {**company, "address": lines, "tax_number": name[:60]}
            issued.bank_details = address
            statement_pdf.write_pdf(account, month)


def test_no_line_of_a_company_is_left_out(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old address may have more lines than the letterhead has room for."""
    month = closed_months(account)[-1]
    issued = month.statement(account)
    monkeypatch.setattr(Month, "statement", lambda *_: issued)
    for lines in (16, 40):
        address = "\n".join(f"Line{n:02}" for n in range(lines))
        company = {"legal_name": "Long Ltd", "name": "Long", "address": address}
        company["billing_email"] = "b@long.example"
        issued.issuer = issued.recipient = company
        text = text_of(statement_pdf.write_pdf(account, month))
        for part in (*address.splitlines(), "b@long.example"):
            assert text.count(part) >= 2, part
        assert ("All lines are further below." in text) is (lines == 40)


def test_every_closed_month_is_listed_with_its_balances(account: Account, browser: Client) -> None:
    page = browser.get(MONTHS).content.decode()
    months = closed_months(account)

    assert [month.name for month in months][-2:] == ["2026-02", "2026-01"]
    link = "/merchant/wallet/?since=2026-02-01&amp;until=2026-02-28#entries"
    assert f'<th scope="row" class="when"><a href="{link}">February 2026<' in page
    assert all(f"{MONTHS}{month.name}.pdf" in page for month in months)
    for later, earlier in pairwise(months):
        assert later.opening == earlier.closing
    assert months[-1].opening == 0
    assert months[0].closing == 40 * Decimal("12.3456")


def test_a_reader_in_another_time_zone_is_told_of_other_ends_of_months(
    account: Account, browser: Client
) -> None:
    told = "The links to the wallet show days in Asia/Tokyo"
    assert "The links to the wallet" not in browser.get(MONTHS).content.decode()
    session = browser.session
    session[IN_SESSION] = "Asia/Tokyo"
    session.save()
    assert told in browser.get(MONTHS).content.decode()


def test_the_list_of_months_shows_what_moved_the_balance(account: Account, browser: Client) -> None:
    (january,) = (month for month in closed_months(account) if month.name == "2026-01")
    assert january.columns == (31 * Decimal("12.3456"), *(Decimal(0),) * 3)
    assert january.opening + sum(january.columns) == january.closing

    page = browser.get(MONTHS).content.decode()

    row = page.partition(">January 2026<")[2].partition("PDF")[0]
    figures = re.findall(r'<td class="number">(?:<a [^>]+month=2026-01">)?([^<\s]+)<', row)
    assert figures == ["0.00", "382.7136", "0.00", "0.00", "0.00", "382.7136"]


def test_the_csv_file_is_one_table_from_balance_to_balance(
    account: Account, browser: Client
) -> None:
    answer: Any = browser.get(f"{MONTHS}2026-01.csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))

    assert [row["kind"] for row in (rows[0], rows[-1])] == ["opening balance", "closing balance"]
    amounts = sum((Decimal(row["amount"]) for row in rows[1:-1]), Decimal(0))
    assert len(rows) == 33
    assert Decimal(rows[0]["balance_after"]) + amounts == Decimal(rows[-1]["balance_after"])


def test_each_row_of_the_csv_file_repeats_the_heading_data(
    account: Account, browser: Client
) -> None:
    issue_with_companies(account)
    browser.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"

    answer: Any = browser.get(f"{MONTHS}2026-01.csv")
    first, *rows = csv.reader(io.StringIO(answer.content.decode()))

    assert first[: len(COLUMNS)] == COLUMNS
    heading = dict(zip(first[len(COLUMNS) :], rows[0][len(COLUMNS) :], strict=True))
    assert {tuple(row[len(COLUMNS) :]) for row in rows} == {tuple(heading.values())}
    assert heading == {
        "statement_number": f"2026-01-{account.pk:04}",
        "period_from": "2026-01-01",
        "period_until": "2026-01-31",
        "date_of_issue": str(timezone.now().astimezone(UTC).date()),
        "account": account_name(account),
        **dict.fromkeys(("issuer_country", "issuer_contact"), ""),
        **dict.fromkeys(
            ("recipient_address", "recipient_tax_number", "recipient_billing_email"), ""
        ),
        **{f"issuer_{name}": value.replace("\n", ", ") for name, value in ISSUER.items()},
        **{f"recipient_{name}": value for name, value in RECIPIENT.items()},
    }


def test_a_month_that_is_not_closed_has_no_statement(account: Account, browser: Client) -> None:
    now = datetime.now(UTC)

    for month in (f"{now:%Y-%m}", "2025-12", "2026-13", "0001-01", "9999-12"):
        assert browser.get(f"{MONTHS}{month}.pdf").status_code == 404


def test_members_of_other_accounts_get_their_own_months(account: Account) -> None:
    other = browser_of(make_member(make_account(balance="0"), Role.OWNER).user)

    assert other.get(f"{MONTHS}2026-01.pdf").status_code == 404
    assert "No month is closed yet" in other.get(MONTHS).content.decode()


def test_a_month_with_too_many_entries_for_paper_has_its_days(
    account: Account, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement_pdf, "MOST_ENTRIES", 30)

    text = text_of(browser.get(f"{MONTHS}2026-01.pdf").content)

    assert "too many for paper" in text
    assert text.count("2026-01-") > 31
    assert "00:00:00" not in text


def test_a_month_reads_its_own_closes_and_the_last_before(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_days_before(date(2026, 4, 1))
    read: list[Any] = []
    from_db = WalletClose.from_db
    monkeypatch.setattr(WalletClose, "from_db", lambda *row: read.append(row) or from_db(*row))  # type: ignore[func-returns-value]

    months = {month.name: month for month in closed_months(account)}
    assert len(read) == 1  # the first, for its opening balance
    for name, days, before in (("2026-01", 31, 0), ("2026-02", 9, 1), ("2026-03", 0, 1)):
        read.clear()
        month = find_month(account, name)
        assert month is not None
        assert (len(month.days), len(read)) == (days, days + before)
        listed = months[name]
        assert (month.opening, month.closing) == (listed.opening, listed.closing)


def test_a_name_that_is_no_closed_month_finds_none(account: Account) -> None:
    close_days_before(date(2026, 3, 10))
    names = ("2026-03", "9999-12", "0001-01", "2026-1", "2026-W01", "x")
    assert [name for name in names if find_month(account, name) is not None] == []
