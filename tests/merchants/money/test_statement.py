"""The wallet page: the balance and its entries, with pages, filters and files."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.factories import Merchant, adjust, buy_topup, deposit, make_account, make_product
from tests.merchants.ledger import BEGIN, book_many
from tests.merchants.people import viewer_of
from wallets.models import EntryKind, LedgerEntry
from wallets.selectors import entries_of, read_in_chunks

pytestmark = pytest.mark.django_db

WALLET = "/merchant/wallet/"
CSV = "/merchant/wallet/statement.csv"
JSON = "/merchant/wallet/statement.json"


def rows(answer: Any) -> list[LedgerEntry]:
    found: list[LedgerEntry] = answer.context["page"].rows
    return found


def downloaded(answer: Any) -> str:
    assert answer.status_code == 200
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return b"".join(parts).decode()


def walk(browser: Client, path: str, link: str) -> Iterator[Any]:
    """Yields this page and the pages after it, following the links to older or newer ones."""
    while True:
        answer = browser.get(path)
        yield answer
        query = getattr(answer.context["page"], link)
        if query is None:
            return
        path = f"{WALLET}?{query}"


def test_balance_and_amounts_are_exact(merchant: Merchant) -> None:
    account = merchant.account
    adjust(account=account, amount=Decimal("-0.0725"), actor="admin:anna", note="internal remark")
    product = make_product(price="9.99", codes=1)
    order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]

    answer = viewer_of(account).get(WALLET)
    page = answer.content.decode()

    assert [(row.amount, row.balance_after) for row in rows(answer)] == [
        (Decimal("-9.9900"), Decimal("89.9375")),
        (Decimal("-0.0725"), Decimal("99.9275")),
        (Decimal("100.0000"), Decimal("100.0000")),
    ]
    assert "89.9375 USD" in page
    assert "-0.0725" in page
    assert f'href="/merchant/orders/{order["reference"]}/"' in page


def test_notes_of_staff_are_not_shown(merchant: Merchant) -> None:
    account = merchant.account
    adjust(account=account, amount=Decimal("1"), actor="admin:anna", note="internal remark")
    browser = viewer_of(account)

    for shown in (
        browser.get(WALLET).content.decode(),
        downloaded(browser.get(CSV)),
        downloaded(browser.get(JSON)),
    ):
        assert "anna" not in shown
        assert "internal remark" not in shown


def test_pages_have_no_gaps_or_repetitions_in_both_directions() -> None:
    account = make_account(balance="0")
    book_many(account, 120)
    book_many(make_account(), 60)
    browser = viewer_of(account)

    older = list(walk(browser, WALLET, "older"))
    newer = list(walk(browser, f"{WALLET}?after=0", "newer"))

    everything = list(LedgerEntry.objects.filter(wallet=account.pk).order_by("-pk"))
    assert [row for page in older for row in rows(page)] == everything
    assert [row for page in reversed(newer) for row in rows(page)] == everything
    assert [len(rows(page)) for page in older] == [50, 50, 20]
    assert older[0].context["page"].newer is None


@pytest.mark.parametrize("kind", EntryKind)
def test_entries_are_filtered_by_kind(merchant: Merchant, kind: EntryKind) -> None:
    account = merchant.account
    buy_topup(merchant)
    adjust(account=account, amount=Decimal("1"), actor="test", note="")

    shown = rows(viewer_of(account).get(WALLET, {"kind": kind}))

    assert shown == list(LedgerEntry.objects.filter(wallet=account.pk, kind=kind))


def test_entries_are_filtered_by_day_with_both_ends_included() -> None:
    account = make_account(balance="0")
    book_many(account, 24 * 60, apart=timedelta(minutes=10))  # ten days
    days = {"since": "2026-01-03", "until": "2026-01-04"}

    answers = list(walk(viewer_of(account), f"{WALLET}?since=2026-01-03&until=2026-01-04", "older"))

    moments = [row.created_at for page in answers for row in rows(page)]
    assert len(moments) == 2 * 144
    assert min(moments) == datetime(2026, 1, 3, tzinfo=UTC)
    assert max(moments) == datetime(2026, 1, 4, 23, 50, tzinfo=UTC)
    file = downloaded(viewer_of(account).get(CSV, days))
    assert len(file.splitlines()) == 1 + len(moments)


def test_an_entry_that_waited_for_the_wallet_is_found_by_its_day() -> None:
    """A transaction that began before midnight may get the wallet's lock after later ones.

    Its entry then has a higher id than theirs but an earlier time.
    """
    account = make_account(balance="0")
    midnight = datetime(2026, 2, 2, tzinfo=UTC)
    book_many(account, 500, begin=midnight - timedelta(minutes=250))
    late = midnight - timedelta(seconds=10)
    book_many(account, 1, begin=late)
    book_many(account, 500, begin=midnight + timedelta(minutes=251))

    before = entries_of(account, until=midnight)
    after = entries_of(account, since=midnight)

    assert before.count() == 251
    assert before.latest("pk").created_at == late
    assert set(before) | set(after) == set(LedgerEntry.objects.filter(wallet=account.pk))


def test_days_outside_the_history_are_accepted() -> None:
    account, other = make_account(balance="0"), make_account(balance="0")
    book_many(account, 3)
    rows = LedgerEntry.objects.filter(wallet=account.pk)
    for days in product(
        (None, "2025-12-01", "2026-01-01", "2026-06-01", "2199-12-31"),
        (None, "2000-01-01", "2026-01-01", "2026-06-01", "2199-12-31"),
    ):
        first, last = (datetime.fromisoformat(f"{day}T00:00Z") if day else None for day in days)

        assert set(entries_of(account, since=first, until=last)) == {
            row
            for row in rows
            if (not first or row.created_at >= first) and (not last or row.created_at < last)
        }, days
        assert not entries_of(other, since=first, until=last), days


@pytest.mark.parametrize(
    "query",
    [
        "kind=bribe",
        "kind=%00",
        "since=yesterday",
        "since=0001-01-01",
        "until=9999-12-31",
        "since=2026-13-40",
        "since=%ED%A0%80",
        "since=2026-02-01&until=2026-01-01",
        "since=" + "9" * 5000,
    ],
)
def test_a_bad_filter_is_explained_and_exports_nothing(query: str) -> None:
    browser = viewer_of(make_account())

    answer = browser.get(f"{WALLET}?{query}")

    assert answer.status_code == 200
    assert 'aria-invalid="true"' in answer.content.decode()
    assert rows(answer) == []
    assert browser.get(f"{CSV}?{query}").status_code == 400
    assert browser.get(f"{JSON}?{query}").status_code == 400


@pytest.mark.parametrize(
    "query",
    ["before=-1", "before=0", "after=" + "9" * 30, "before=x", "after=%00", "before=" + "9" * 5000],
)
def test_a_bad_position_shows_the_first_page(query: str) -> None:
    assert len(rows(viewer_of(make_account()).get(f"{WALLET}?{query}"))) == 1


def test_an_account_without_a_wallet_gets_a_message() -> None:
    browser = viewer_of(make_account(wallet=False))

    assert "no wallet" in browser.get(WALLET).content.decode()
    assert len(downloaded(browser.get(CSV)).splitlines()) == 1


def test_the_files_hold_every_entry_exactly_and_oldest_first(merchant: Merchant) -> None:
    account = merchant.account
    adjust(account=account, amount=Decimal("-0.0725"), actor="test", note="")
    reference = buy_topup(merchant)
    deposit(account=account, amount=Decimal("12345678901234.0001"), actor="test")
    browser = viewer_of(account)

    lines = list(csv.DictReader(io.StringIO(downloaded(browser.get(CSV)))))
    document = json.loads(downloaded(browser.get(JSON)), parse_float=Decimal)

    kept = list(LedgerEntry.objects.filter(wallet=account.pk).order_by("pk"))
    assert document["account"] == account.name
    assert document["currency"] == "USD"
    for found in (lines, document["entries"]):
        assert [int(row["id"]) for row in found] == [row.pk for row in kept]
        assert [Decimal(row["amount"]) for row in found] == [row.amount for row in kept]
        assert [Decimal(row["balance_after"]) for row in found] == [
            row.balance_after for row in kept
        ]
        assert [row["order_reference"] or None for row in found] == [None, None, reference, None]
        assert [datetime.fromisoformat(row["time"]) for row in found] == [
            row.created_at for row in kept
        ]
    assert lines[3]["amount"] == "12345678901234.0001"


def test_the_files_are_attachments_that_are_not_cached() -> None:
    browser = viewer_of(make_account())

    for path, kind in ((CSV, "text/csv; charset=utf-8"), (JSON, "application/json")):
        answer = browser.get(path)
        assert answer.headers["Content-Type"] == kind
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert "no-store" in answer.headers["Cache-Control"]


def test_a_file_leaves_out_entries_made_after_it_began() -> None:
    account = make_account(balance="0")
    book_many(account, 1500)

    reading = read_in_chunks(entries_of(account))
    first = next(reading)
    book_many(account, 5)
    read = [first, *reading]

    assert len(read) == 1500
    assert read == sorted(read)


def test_a_page_deep_in_history_reads_as_few_rows() -> None:
    account = make_account(balance="0")
    book_many(account, 20_000)
    adjust(account=account, amount=Decimal("1"), actor="test", note="")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE wallets_ledgerentry")
    oldest = LedgerEntry.objects.filter(wallet=account.pk).earliest("pk").pk

    for filters in (
        {},
        {"kind": EntryKind.ADJUSTMENT},
        {"since": BEGIN + timedelta(days=5), "until": BEGIN + timedelta(days=6)},
    ):
        entries = entries_of(account, **filters)
        for place in (entries, entries.filter(pk__lt=oldest + 30)):
            assert _rows_read(place.order_by("-pk")[:51]) <= 250, filters


def test_a_page_takes_few_queries() -> None:
    account = make_account(balance="0")
    book_many(account, 200)
    browser = viewer_of(account)
    oldest = LedgerEntry.objects.filter(wallet=account.pk).earliest("pk").pk

    for query in ("", f"?before={oldest + 60}", "?since=2026-01-01&until=2026-01-02"):
        browser.get(WALLET)  # the first request of a session is recorded
        with CaptureQueriesContext(connection) as queries:
            browser.get(WALLET + query)
        # Six of them occur on every page, and one counts the entries.
        assert len(queries) <= 13, query


def _rows_read(entries: Any) -> int:
    """The number of rows that the database read for this query."""
    plan = json.loads(entries.explain(format="json", analyze=True))

    def looked_at(node: Any) -> int:
        own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        return int(own + sum(looked_at(child) for child in node.get("Plans", [])))

    return looked_at(plan[0]["Plan"])


def test_a_wrong_day_shows_how_the_reader_writes_one() -> None:
    browser = viewer_of(make_account())
    for language, day in (("de", "21.11.2026"), ("en", "2026-11-21")):
        headers = {"Accept-Language": language}
        page = browser.get(f"{WALLET}?since=abc", headers=headers).content.decode()
        assert f" {day}" in page
        answer = browser.get(f"{WALLET}?since={day}", headers=headers)
        assert answer.context["filters"].cleaned_data["since"] == date(2026, 11, 21)
        assert 'value="2026-11-21"' in answer.content.decode()  # a calendar shows no other form
