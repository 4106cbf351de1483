"""Each day is closed once, and its close agrees with the ledger for ever."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import ProgrammingError
from django.test import Client
from django.utils.text import slugify

from accounts.models import Account
from audit.models import AuditAction, AuditEntry
from core.backoffice.staff_roles import StaffRole
from operators.upkeep.reconcile import reconcile
from tests.concurrency.racing import execute, race, without_triggers
from tests.factories import Merchant, adjust, make_account, make_merchant, make_product
from tests.merchants.ledger import BEGIN, book_many, close_days_before
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import browser_with, make_close, make_staff, signed_in, url
from wallets.evidence import closes
from wallets.evidence.closes import close_days, last_closed_day
from wallets.models import DailyClose, WalletClose
from wallets.services import credit, deposit, pay_out

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

SUMS = ("opening", *closes.COLUMNS.values(), "closing")


def today() -> date:
    return datetime.now(UTC).date()


def findings() -> list[Any]:
    """The findings about closes."""
    return [one for one in reconcile()["findings"] if "close" in one["check"]]


def sums(close: Any) -> dict[str, Decimal]:
    return {name: value for name in SUMS if (value := getattr(close, name))}


@pytest.fixture
def tomorrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The present day can be closed."""
    now = datetime.combine(today(), datetime.min.time(), UTC) + timedelta(
        days=1, hours=1, minutes=1
    )
    monkeypatch.setattr(closes, "database_now", lambda: now)


@pytest.fixture
def merchant() -> Merchant:
    """An account with an entry of each kind today."""
    merchant = make_merchant(balance="0")
    account = merchant.account
    deposit(account=account, amount=Decimal("100.50"), actor="a", booking_reference="in")
    product = make_product(price="20.00", codes=2)
    order = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
    credit(
        order_reference=order["reference"], amount=Decimal(3), actor="a",
        booking_reference="back", note="Sorry",
    )  # fmt: skip
    adjust(account=account, amount=Decimal("-0.25"), actor="a")
    pay_out(account=account, amount=Decimal(30), actor="a", booking_reference="out")
    return merchant


def test_a_close_sums_up_the_day_by_kind(merchant: Merchant, tomorrow: None) -> None:
    make_account(balance="7")
    close_days()

    assert last_closed_day() == today()
    close = WalletClose.objects.get(wallet=merchant.account.pk, day=today())
    assert sums(close) == {
        "deposits": Decimal("100.50"),
        "purchases": Decimal(-20),
        "credits": Decimal(3),
        "adjustments": Decimal("-0.25"),
        "payouts": Decimal(-30),
        "closing": Decimal("53.25"),
    }
    day = DailyClose.objects.get(day=today())
    assert (day.currency, day.wallets, day.closing) == ("USD", 2, Decimal("60.25"))
    assert day.deposits == Decimal("107.50")
    assert findings() == []
    assert "is closed within" not in str(reconcile()["warnings"])


def test_a_day_is_not_closed_before_it_has_ended(merchant: Merchant) -> None:
    close_days()

    assert not WalletClose.objects.filter(day=today()).exists()


def test_days_without_entries_are_closed_and_missed_days_too() -> None:
    account = make_account(balance="0")
    book_many(account, 3, amount="2.00", begin=BEGIN, apart=timedelta(days=2))

    assert close_days_before(date(2026, 1, 11)) == 11

    by_day = {close.day: close for close in WalletClose.objects.filter(wallet=account.pk)}
    first = BEGIN.date()
    days = [first, first + timedelta(days=2), first + timedelta(days=4)]
    assert [(int(by_day[day].opening), int(by_day[day].closing)) for day in days] == [
        (0, 2),
        (2, 4),
        (4, 6),
    ]
    assert len(by_day) == 3
    empty = DailyClose.objects.get(day=first + timedelta(days=1))
    assert (empty.wallets, int(empty.opening), int(empty.closing)) == (0, 2, 2)
    assert close_days_before(date(2026, 1, 11)) == 0


def test_an_entry_belongs_to_the_day_of_its_time() -> None:
    account = make_account(balance="0")
    midnight = BEGIN + timedelta(days=1)
    book_many(account, 2, amount="1.00", begin=midnight - timedelta(microseconds=1),
              apart=timedelta(microseconds=1))  # fmt: skip
    close_days_before(date(2026, 1, 3))

    days = WalletClose.objects.filter(wallet=account.pk).order_by("day")
    assert [(close.day, int(close.deposits)) for close in days] == [
        (BEGIN.date(), 1),
        (midnight.date(), 1),
    ]


def test_processes_that_close_at_once_close_each_day_once(
    merchant: Merchant, tomorrow: None
) -> None:
    race([close_days] * 4)

    assert last_closed_day() == today()
    assert WalletClose.objects.filter(day=today()).count() == 1
    assert findings() == []


@pytest.mark.parametrize(
    "table", ["wallets_walletclose", "wallets_dailyclose", "wallets_monthlystatement"]
)
@pytest.mark.parametrize("change", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {}"])
def test_nobody_rewrites_a_close(table: str, change: str) -> None:
    with pytest.raises(ProgrammingError, match="never rewritten"):
        execute(change.format(table))


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (
            "UPDATE wallets_walletclose SET deposits = deposits + 1, closing = closing + 1",
            "a close of a wallet agrees with the entries of its day",
        ),
        (
            "DELETE FROM wallets_walletclose",
            "a close of a wallet agrees with the entries of its day",
        ),
        (
            "UPDATE wallets_walletclose SET opening = opening + 1, closing = closing + 1",
            "a close of a wallet begins with the balance of the one before",
        ),
        (
            "UPDATE wallets_dailyclose SET deposits = deposits + 1, closing = closing + 1",
            "the close of a day is the sum of its wallets, and follows that of the day before",
        ),
        (
            "UPDATE wallets_dailyclose SET opening = opening + 1, closing = closing + 1",
            "the close of a day is the sum of its wallets, and follows that of the day before",
        ),
    ],
)
def test_reconcile_finds_a_close_that_differs(
    damage: str, rule: str, merchant: Merchant, tomorrow: None
) -> None:
    close_days()
    without_triggers(damage)

    assert rule in {finding["check"] for finding in findings()}


def test_reconcile_warns_about_a_day_that_is_not_closed() -> None:
    book_many(make_account(balance="0"), 1)

    assert "each day is closed within a day of its end" in str(reconcile()["warnings"])


def test_finance_reads_the_closes(merchant: Merchant, tomorrow: None) -> None:
    close_days()
    browser: Client = signed_in()

    page = browser.get("/admin/wallets/dailyclose/").content.decode()
    assert "53.25" in page
    day = browser.get(url(DailyClose.objects.get(day=today()))).content.decode()
    assert f"/admin/wallets/walletclose/?day_from={today()}" in day
    listed = browser.get(
        "/admin/wallets/walletclose/",
        {"day_from": str(today()), "day_to": str(today()), "wallet__account__currency": "USD"},
    )
    assert [row.day for row in listed.context["cl"].result_list] == [today()]


def test_finance_downloads_the_statement_that_the_merchant_reads() -> None:
    account = make_account(balance="0")
    book_many(account, 3, amount="2.00")
    close_days_before(date(2026, 3, 1))
    close = WalletClose.objects.get(wallet=account.pk)
    finance = browser_with(StaffRole.FINANCE)
    address = f"/admin/wallets/wallet/{account.pk}/statement/{BEGIN:%Y-%m}"

    for row in (close, account.wallet):
        assert f'href="{address}/pdf/"' in finance.get(url(row)).content.decode()
    assert url(account.wallet) in finance.get(url(account)).content.decode()
    theirs = browser_of(make_member(account)).get(f"/merchant/wallet/months/{BEGIN:%Y-%m}.csv")
    assert finance.get(f"{address}/csv/").content == theirs.content
    assert finance.get(f"{address}/pdf/").content.startswith(b"%PDF")
    assert finance.get(f"{address}/html/").status_code == 404
    recorded = AuditEntry.objects.filter(action=AuditAction.EXPORTED, actor__is_staff=True)
    names = list(recorded.order_by("pk").values_list("reference", flat=True))
    assert names == [f"statement-{slugify(account.name)}-2026-01.{one}" for one in ("csv", "pdf")]
    assert browser_with(StaffRole.SUPPORT).get(f"{address}/csv/").status_code == 403


def test_the_trail_names_the_month_of_an_account_with_a_long_name() -> None:
    account = make_account(balance="0")
    Account.objects.filter(pk=account.pk).update(name="Long " * 39)
    book_many(account, 1, amount="2.00")
    close_days_before(date(2026, 3, 1))

    browser_with(StaffRole.FINANCE).get(
        f"/admin/wallets/wallet/{account.pk}/statement/2026-01/csv/"
    )

    recorded = AuditEntry.objects.get(action=AuditAction.EXPORTED, actor__is_staff=True)
    assert recorded.reference.endswith("-2026-01.csv")


def test_finance_downloads_the_statement_of_a_month_without_entries() -> None:
    account = make_account(balance="0")
    book_many(account, 1, amount="2.00")
    close_days_before(date(2026, 3, 1))
    finance = browser_with(StaffRole.FINANCE)
    address = f"/admin/wallets/wallet/{account.pk}/statement/2026-02/csv/"

    assert f'href="{address}"' in finance.get(url(account.wallet)).content.decode()
    theirs = browser_of(make_member(account)).get("/merchant/wallet/months/2026-02.csv")
    assert finance.get(address).content == theirs.content


@pytest.mark.parametrize("right", ["audit.export_lists", "wallets.view_ledgerentry"])
def test_staff_who_may_not_export_or_read_the_ledger_see_no_statement(right: str) -> None:
    account = make_account(balance="0")
    book_many(account, 1, amount="2.00")
    close_days_before(date(2026, 3, 1))
    close = WalletClose.objects.get(wallet=account.pk)
    browser = signed_in(make_staff(right, "wallets.view_walletclose", "wallets.view_wallet"))

    for row in (close, account.wallet):
        page = browser.get(url(row))
        assert page.status_code == 200
        assert "/statement/" not in page.content.decode()
    address = f"/admin/wallets/wallet/{account.pk}/statement/2026-01/csv/"
    assert browser.get(address).status_code == 403


def test_a_month_has_no_statement_before_it_is_closed() -> None:
    account = make_account(balance="0")
    make_close(account, date(2099, 1, 15))
    close = WalletClose.objects.get(wallet=account.pk)
    finance = browser_with(StaffRole.FINANCE)

    assert "The month is not closed yet." in finance.get(url(close)).content.decode()
    address = f"/admin/wallets/wallet/{account.pk}/statement"
    for file in ("2099-01/csv", "2099-13/csv", "x/csv"):
        assert finance.get(f"{address}/{file}/").status_code == 404
