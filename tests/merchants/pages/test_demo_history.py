"""The demo has three months of sales, made by the service itself, and its clock is true again."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.models import Count, F, Max, Min, Sum
from django.test import Client
from django.utils import timezone
from psycopg.errors import DivisionByZero
from pytest_django import Settings

from accounts.models import OwnCompany
from cases.models import Case, CaseState
from catalogue.models import Batch, PriceListEntry, Shelf
from figures.margins import By, Period, read_lines
from figures.models import DailySales, DailyStock
from operators.imports.demo import clock
from operators.imports.demo.history import History
from operators.imports.models import FileImport
from operators.upkeep.reconcile import reconcile
from orders.models import Order
from tests.merchants.pages.test_demo import paste, welcome
from topups.models import Fulfilment
from wallets.models import AnnouncedTransfer, EntryKind, LedgerEntry, MonthlyStatement, Wallet

pytestmark = pytest.mark.django_db(transaction=True)

CLOCKS = (
    "SELECT proname, lanname FROM pg_proc JOIN pg_language AS l ON l.oid = prolang"
    " WHERE proname IN ('now', 'transaction_timestamp', 'statement_timestamp', 'clock_timestamp')"
)


def test_the_demo_shows_three_months_that_reconcile(
    settings: Settings, tmp_path: Path, alone: None
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    begun = timezone.now()
    text = welcome("--base-url", "http://localhost")
    now = timezone.now()

    assert reconcile()["ok"] is True
    times = Order.objects.aggregate(first=Min("created_at"), last=Max("created_at"))
    assert timedelta(days=89) < now - times["first"] < timedelta(days=92)
    assert now - times["last"] < timedelta(minutes=5)
    assert not Fulfilment.objects.filter(
        closed_at__gt=F("created_at") + timedelta(hours=1)
    ).exists()
    _check_sums()
    _check_stock(begun)
    states = {CaseState.OPEN, CaseState.CREDITED, CaseState.REPLACED}
    assert set(Case.objects.values_list("state", flat=True)) == states
    assert len(FileImport.objects.get().result["doubts"]) == 1
    assert PriceListEntry.objects.count() == 2
    assert AnnouncedTransfer.objects.count() == 1
    assert MonthlyStatement.objects.count() >= 4
    assert OwnCompany.objects.get().logo is not None
    _check_signed_statement(text)
    soon = now.date() + timedelta(days=14)
    assert Batch.objects.filter(expires_on__lt=soon, unit_cost=None).exists()
    assert Batch.objects.filter(cost_currency="EUR").exists()
    assert Wallet.objects.aggregate(least=Min("balance"))["least"] > 100

    assert paste(text).status_code == 201
    _check_clock()


def test_a_run_after_one_that_was_killed_has_codes_and_the_true_clock(
    settings: Settings, tmp_path: Path, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR_DIR = tmp_path / "var"
    with monkeypatch.context() as killed:
        killed.setattr(clock, "TRUE", "SELECT 1 / 0")
        killed.setattr(History, "run", lambda *_, **__: 1 / 0)
        with pytest.raises(DivisionByZero):
            welcome("--base-url", "http://localhost")
    connection.close()

    text = welcome("--base-url", "http://localhost")

    assert paste(text).status_code == 201
    _check_clock()


def _check_sums() -> None:
    """Two merchants; the counted sales and margins are those of the ledger."""
    entries = LedgerEntry.objects.values_list("kind").annotate(
        number=Count("pk"), sum=Sum("amount")
    )
    kinds = {kind: (number, amount) for kind, number, amount in entries}
    assert kinds[EntryKind.PURCHASE][0] > 400
    assert kinds[EntryKind.REFUND][0] > 1
    assert kinds[EntryKind.CREDIT][0] == 1
    last = -LedgerEntry.objects.filter(kind=EntryKind.PURCHASE).latest("pk").amount  # is new
    sold = -kinds[EntryKind.PURCHASE][1] - last
    assert DailySales.objects.aggregate(sum=Sum("amount"))["sum"] == sold
    assert DailySales.objects.values("account").distinct().count() == 2
    today = timezone.now().date()
    lines = read_lines(Period(today - timedelta(days=100), today), by=By.PRODUCT)
    assert sum(line.sold for line in lines) == sold
    paid_back = kinds[EntryKind.REFUND][1] + kinds[EntryKind.CREDIT][1]
    assert sum(line.paid_back for line in lines) == paid_back
    assert any(line.unknown for line in lines)
    assert any(line.margin for line in lines)


def _check_stock(begun: datetime) -> None:
    """The stock of today was counted after the history was made, and is that of the shelves."""
    counted = DailyStock.objects.filter(day=DailyStock.objects.aggregate(last=Max("day"))["last"])
    assert counted.aggregate(first=Min("counted_at"))["first"] > begun
    in_stock = Shelf.objects.aggregate(sum=Sum("available_stock"))["sum"]
    assert counted.aggregate(sum=Sum("codes"))["sum"] == in_stock


def _check_signed_statement(text: str) -> None:
    owner = Client()
    email, password = re.findall(r"/merchant/   email (\S+), password (\S+)", text)[0]
    owner.post("/merchant/sign-in/", {"username": email, "password": password})
    answer: Any = owner.get("/merchant/wallet/signed-statement.json")
    assert answer.json()["account"] == "Demo merchant"
    assert len(answer.json()["entries"]) > 200


def _check_clock() -> None:
    with connection.cursor() as cursor:
        cursor.execute(CLOCKS)
        assert {language for _name, language in cursor.fetchall()} == {"internal"}
        cursor.execute("SELECT set_config('demo.clock', '2026-01-01', false)")
        cursor.execute("SELECT now() - %s::timestamptz", [timezone.now()])
        assert abs(cursor.fetchone()[0]) < timedelta(minutes=1)
        with pytest.raises(DatabaseError, match="the database chooses the time"):
            cursor.execute(
                "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount,"
                " balance_after, actor, created_at, booking_reference)"
                " SELECT min(account_id), 'deposit', 'bank', 1, 0, 'x', '2026-01-01', 'y'"
                "   FROM wallets_wallet"
            )
