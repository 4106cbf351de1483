"""Merchants download their statement and their orders with what their own books need."""

import csv
import io
from datetime import UTC
from decimal import Decimal
from http import HTTPStatus
from typing import Any

import openpyxl
import pytest
from django.test import Client
from django.utils import timezone, translation
from django.utils.text import capfirst
from django.utils.translation import gettext
from pypdf import PdfReader

from accounts.models import Account
from accounts.preferences.time_zones import LANGUAGE_IN_SESSION
from audit.models import AuditAction, AuditEntry
from core.files.table_files import HEADINGS
from merchants.models import Role
from merchants.money.months import Month
from merchants.money.statement import COLUMNS
from merchants.money.statement_pdf import write_pdf
from merchants.people import access
from tests.factories import (
    Merchant,
    adjust,
    buy_topup,
    make_account,
    make_merchant,
    make_product,
    make_record,
    make_topup_product,
)
from tests.merchants.pages.test_identity_matrix import DO, ROWS, make_world
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_case, make_staff
from wallets.models import LedgerEntry, MonthlyStatement
from wallets.services import deposit
from wallets.transfers import announce_transfer, close_transfer

pytestmark = pytest.mark.django_db

ORDERS = "/merchant/orders/orders.csv"
STATEMENT = "/merchant/wallet/statement.csv"


@pytest.fixture
def merchant() -> Merchant:
    merchant = make_merchant(balance="0")
    deposit(account=merchant.account, amount=Decimal(500), actor="a", booking_reference="=TR-1 x")
    return merchant


@pytest.fixture
def browser(merchant: Merchant) -> Client:
    return browser_of(make_member(merchant.account, Role.VIEWER).user)


def body_of(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def lines_of(answer: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(body_of(answer).decode("utf-8-sig"))))


def test_a_statement_names_client_product_key_and_bank_reference(
    merchant: Merchant, browser: Client
) -> None:
    product = make_product(price="3.00", codes=3, name="Card 10")
    merchant.buy("order-1042", product_id=product.pk, quantity=3)
    adjust(account=merchant.account, amount=Decimal(1), actor="test")

    paid_in, bought, adjusted = lines_of(browser.get(STATEMENT))

    assert paid_in["bank_reference"] == "'=TR-1 x"
    assert (bought["client"], bought["product"]) == (merchant.client.name, str(product))
    assert (bought["idempotency_key"], bought["quantity"]) == ("order-1042", "3")
    assert adjusted["bank_reference"] == ""
    json = browser.get(STATEMENT.replace("csv", "json")).json()["entries"]
    assert [entry["idempotency_key"] for entry in json] == [None, "order-1042", None]
    assert [entry["quantity"] for entry in json] == [None, 3, None]
    assert [entry["bank_reference"] for entry in json] == ["=TR-1 x", None, None]
    page = browser.get("/merchant/wallet/").content.decode()
    assert "=TR-1 x" in page
    times = "\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}3"
    assert f'Purchase <span class="soft">{product}\n {times}</span>' in page


def test_a_pack_is_counted_in_codes(merchant: Merchant, browser: Client) -> None:
    product = make_product(price="3.00", codes=3, name="Pack", quantity_step=3)
    merchant.buy("order-1042", product_id=product.pk, quantity=3)
    assert "Pack\n 3 codes</span>" in browser.get("/merchant/wallet/").content.decode()


def test_all_transfers_on_their_way_are_shown(merchant: Merchant, browser: Client) -> None:
    references = [f"INV-{number}" for number in range(8)]
    owner = make_member(merchant.account, Role.OWNER).user
    for reference in references:
        announce_transfer(
            account=merchant.account, amount=Decimal(1), reference=reference, actor=owner
        )
    page = browser.get("/merchant/wallet/").content.decode()
    assert [one for one in references if one not in page] == []


def test_the_file_of_transfers_has_the_words_of_the_page(
    merchant: Merchant, browser: Client
) -> None:
    account = merchant.account
    owner = make_member(account, Role.OWNER).user
    for reference, closes in (("TR-1", None), ("TR-2", owner), ("TR-3", make_staff())):
        transfer = announce_transfer(
            account=account, amount=Decimal(5), reference=reference, actor=owner
        )
        if closes:
            close_transfer(transfer=transfer, actor=closes)

    lines = lines_of(browser.get("/merchant/wallet/transfers.csv"))

    assert [line["state"] for line in lines] == ["did not arrive", "withdrawn", "on its way"]
    page = browser.get("/merchant/wallet/").content.decode()
    assert all(f">{line['state']}</span>" in page for line in lines)


def test_orders_are_downloaded_without_codes(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orders.account_orders.CHUNK", 2)
    product = make_product(price="9.00", codes=5)
    codes = []
    for number in range(5):
        bought = merchant.buy(f"order-{number}", product_id=product.pk, quantity=1)
        codes.append(bought.json()["data"]["codes"][0]["code"])
    reference = buy_topup(merchant, make_topup_product(price="1.00"))
    make_merchant().buy(product_id=make_product(codes=1).pk, quantity=1)

    answer: Any = browser.get(ORDERS)
    content = b"".join(answer.streaming_content if answer.streaming else [answer.content])
    lines = list(csv.DictReader(io.StringIO(content.decode())))

    assert lines[0]["reference"] == reference
    assert lines[0]["player_id"] == "0012345"
    assert [line["idempotency_key"] for line in lines[1:]] == [
        f"order-{number}" for number in (4, 3, 2, 1, 0)
    ]
    assert not any(code.encode() in content for code in codes)


def test_the_filter_of_the_list_is_that_of_the_file(merchant: Merchant, browser: Client) -> None:
    buy_topup(merchant, make_topup_product(price="1.00"))
    merchant.buy(product_id=make_product(codes=1).pk, quantity=1)

    assert len(lines_of(browser.get(ORDERS, {"status": "pending"}))) == 1
    assert len(lines_of(browser.get(ORDERS, {"client": merchant.client.pk}))) == 2
    assert len(lines_of(browser.get(ORDERS, {"until": "2000-01-01"}))) == 0
    assert browser.get(ORDERS, {"client": "x"}).status_code == 302


def test_a_file_is_named_by_merchant_and_period(merchant: Merchant) -> None:
    account = merchant.client.account
    assert account is not None
    Account.objects.filter(pk=account.pk).update(name="Läden & Söhne GmbH")
    owner = browser_of(make_member(account))
    today = timezone.localdate()

    def name_of(path: str, **filters: str) -> str:
        return str(owner.get(path, filters)["Content-Disposition"]).partition('filename="')[2][:-1]

    assert name_of(ORDERS) == f"orders-laden-sohne-gmbh-{today}.csv"
    assert (
        name_of(STATEMENT, since="2026-10-01", until="2026-10-31")
        == "statement-laden-sohne-gmbh-2026-10-01-to-2026-10-31.csv"
    )
    assert name_of(ORDERS, since="2026-10-01") == (
        f"orders-laden-sohne-gmbh-2026-10-01-to-{today}.csv"
    )
    Account.objects.filter(pk=account.pk).update(name="北京")
    assert name_of(ORDERS) == f"orders-account-{account.pk}-{today}.csv"


def test_lists_say_how_many_rows_they_have_and_their_sum(
    merchant: Merchant, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(price="9.00", codes=5)
    for _number in range(3):
        merchant.buy(product_id=product.pk, quantity=1)
    buy_topup(merchant, make_topup_product(price="1.00"))
    lists = {
        "/merchant/orders/": ("Total: 4", "Sum: 28.00 USD"),
        "/merchant/orders/?status=pending": ("Total: 1", "Sum: 1.00 USD"),
        f"/merchant/orders/?client={merchant.client.pk}": ("Total: 4", "Sum: 28.00 USD"),
        f"/merchant/orders/?product={product.name}": ("Total: 3", "Sum: 27.00 USD"),
        "/merchant/wallet/?kind=purchase": ("Total: 4", "Sum: -28.00 USD"),
    }
    for path, words in lists.items():
        page = browser.get(path).content.decode()
        assert all(word in page for word in words), path
    monkeypatch.setattr("merchants.frame.paging.MOST_COUNTED", 3)
    page = browser.get("/merchant/orders/").content.decode()
    assert "Total: more than 3. For a sum, choose fewer days." in page
    assert "Sum:" not in page


def test_each_download_is_in_the_audit_trail(merchant: Merchant, browser: Client) -> None:
    browser.get(ORDERS, {"status": "pending", "q": "a player id", "other": "b"})
    browser.get(STATEMENT)

    entries = AuditEntry.objects.filter(action=AuditAction.EXPORTED).order_by("pk")
    assert [entry.reference for entry in entries] == ["orders.csv", "statement.csv"]
    assert entries[0].note == "status pending"


def test_the_order_page_shows_the_idempotency_key(merchant: Merchant, browser: Client) -> None:
    product = make_product(price="9.00", codes=1)
    order = merchant.buy("order-77", product_id=product.pk, quantity=1).json()["data"]

    page = browser.get(f"/merchant/orders/{order['reference']}/").content.decode()

    assert "order-77" in page
    found = browser.post("/merchant/orders/", {"q": "order-77"}, follow=True).content.decode()
    assert order["reference"] in found


def test_lists_and_the_statement_show_the_idempotency_key(
    merchant: Merchant, browser: Client
) -> None:
    product = make_product(price="9.00", codes=1)
    order = merchant.buy("order-77", product_id=product.pk, quantity=1).json()["data"]
    case = make_case(order["reference"])

    for page in ("/merchant/orders/", "/merchant/wallet/"):
        assert "order-77" in browser.get(page).content.decode(), page
    (line,) = lines_of(browser.get("/merchant/cases/cases.csv"))
    assert (line["case"], line["idempotency_key"]) == (str(case.pk), "order-77")


@pytest.mark.parametrize(("key", "shown"), [("order-77", "order-77"), ("k" * 128, "k" * 48 + "…")])
def test_the_pdf_shows_the_idempotency_key(merchant: Merchant, key: str, shown: str) -> None:
    product = make_product(price="9.00", codes=1)
    merchant.buy(key, product_id=product.pk, quantity=1)
    bought = LedgerEntry.objects.get(wallet=merchant.account.pk, kind="purchase").created_at
    month = Month(bought.astimezone(UTC).date().replace(day=1), Decimal(0), Decimal(0))
    MonthlyStatement.objects.create(
        wallet_id=merchant.account.pk, month=month.first, issuer={}, recipient={"name": "Shop"}
    )

    pages = PdfReader(io.BytesIO(write_pdf(merchant.account, month))).pages

    lines = "\n".join(page.extract_text() for page in pages).splitlines()
    assert f"{product.name} · {shown}" in lines


def test_the_pdf_shows_a_long_reference_cut_in_its_column_and_whole_below() -> None:
    account = make_account(balance="0")
    whole = "RF18 " + "BANK-7781-XY " * 3 + "Z"
    for reference in ("RF18 BANK-1", whole):
        entry = deposit(account=account, amount=Decimal(5), booking_reference=reference, actor="a")
    month = Month(entry.created_at.astimezone(UTC).date().replace(day=1), Decimal(0), Decimal(0))
    MonthlyStatement.objects.create(
        wallet_id=account.pk, month=month.first, issuer={}, recipient={"name": "Shop"}
    )

    pages = PdfReader(io.BytesIO(write_pdf(account, month))).pages

    text = "\n".join(page.extract_text() for page in pages)
    assert "RF18 BANK-1\n" in text
    assert "RF18 BANK-7781-XY BANK-7781-XY…" in text
    assert whole in text


# Pages with a table that is no list of the account: parts of one thing, and the newest of a list.
PARTS = {"order", "client", "overview", "spend", "profile", "search"}


def test_every_list_leads_to_its_files() -> None:
    world = make_world()
    browser = browser_of(make_member(world.account, Role.OWNER).user)
    lists, without = set(), set()
    for name, row in ROWS.items():
        if row.least is None or row.how == DO or name in PARTS or "format" in dict(row.words):
            continue
        page = browser.get(row.path(name, world.ids)).content.decode()
        if "<table" in page:
            lists.add(name)
            without |= set() if ".xlsx" in page and ".csv" in page else {name}

    assert not without
    assert {"orders", "wallet", "months", "prices", "references", "clients", "people"} <= lists


def test_a_workbook_has_its_headings_in_the_readers_language(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "HEAVY_PAGES_PER_MINUTE", 100)
    monkeypatch.setattr(access, "ACCOUNT_HEAVY_PAGES_PER_MINUTE", 100)
    world = make_world()
    browser = browser_of(make_member(world.account, Role.OWNER).user)
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()
    files = [row.path(name, world.ids) for name, row in ROWS.items() if "format" in dict(row.words)]
    found = {}
    for path in (f"{file.rpartition('.')[0]}.csv" for file in files):
        answer: Any = browser.get(path.removesuffix("csv") + "xlsx")
        if answer.status_code == HTTPStatus.OK:
            sheet = openpyxl.load_workbook(io.BytesIO(body_of(answer))).worksheets[-1]
            lines = list(csv.reader(io.StringIO(body_of(browser.get(path)).decode("utf-8-sig"))))
            # A month has its heading data on a sheet of their own, or in the last columns.
            names = lines[0][: len(COLUMNS) if "/months/" in path else None]
            found[path] = [cell.value for cell in sheet[1]]
            # The headings of a file that is imported again are the same for everybody.
            with translation.override("de"):
                german = [capfirst(gettext(name)) for name in names]
            assert found[path] == (names if "/references/" in path else german)
            assert set(names) <= set(HEADINGS), path

    assert len(found) > 8
    assert found[STATEMENT][:4] == ["ID", "Zeit", "Art", "Betrag"]


def test_a_workbook_has_its_words_in_the_readers_language(merchant: Merchant) -> None:
    account = merchant.account
    owner = make_member(account, Role.OWNER).user
    make_topup_product()
    bought = merchant.buy("order-1", product_id=make_product(codes=1).pk, quantity=1)
    make_case(bought.json()["data"]["reference"])
    announce_transfer(account=account, amount=Decimal(5), reference="TR-1", actor=owner)
    browser = browser_of(owner)
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()

    def words(path: str, column: str) -> set[Any]:
        answer: Any = browser.get(f"/merchant/{path}.xlsx")
        sheet = openpyxl.load_workbook(io.BytesIO(body_of(answer))).worksheets[-1]
        (headings, *rows) = sheet.iter_rows(values_only=True)
        return {row[headings.index(column)] for row in rows}

    assert words("wallet/transfers", "Zustand") == {"Unterwegs"}
    assert words("prices/prices", "Art") == {"Gutschein", "Aufladung"}
    assert words("cases/cases", "Zustand") == {"Offen"}
    assert words("people/people", "Rolle") == {"Inhaber"}
    assert words("people/people", "Zustand") == {"Mitglied"}
    assert words("clients/clients", "Zustand") == {"An"}
    assert lines_of(browser.get("/merchant/people/people.csv"))[0]["role"] == "owner"


@pytest.mark.parametrize("list", ["clients", "people", "requests"])
def test_a_list_is_a_spreadsheet(list: str, merchant: Merchant, browser: Client) -> None:
    merchant.buy("key-1", product_id=make_product(codes=1).pk, quantity=1)
    make_record(merchant.client)
    make_record(make_merchant().client)

    answer: Any = browser.get(f"/merchant/{list}/{list}.xlsx")

    sheet = openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets[0]
    (columns, row) = sheet.iter_rows(values_only=True)
    assert columns[0] in ("Client", "Email", "Time")
    assert row[0]


def test_announced_transfers_are_a_file(merchant: Merchant) -> None:
    owner = make_member(merchant.account, Role.OWNER).user
    announce_transfer(account=merchant.account, amount=Decimal(5), reference="=A", actor=owner)

    (line,) = lines_of(browser_of(owner).get("/merchant/wallet/transfers.csv"))

    assert (line["reference"], line["amount"], line["state"]) == ("'=A", "5.00", "on its way")
