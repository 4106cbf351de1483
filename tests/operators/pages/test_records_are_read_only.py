"""Records of money, sales and codes are read-only in the back office, and listed newest first."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from accounts.models import RequestRecord
from audit.models import AuditEntry
from cases.models import Case
from catalogue.models import CodeHold, PriceListEntry, VoucherCode
from idempotency.models import IdempotencyRecord
from merchants.models import Email, Membership
from operators.frame.base import CappedPaginator
from operators.imports.models import FileImport
from operators.telegram.models import Announcement
from operators.upkeep.models import ReconcileRun
from operators.warnings.models import StaffWarning
from orders.models import LostPurchase, Order
from tests.operators.back_office import (
    World,
    list_url,
    rows_for_a_module,
    signed_in,
    url,
    without_frame,
)
from topups.models import Fulfilment
from wallets.models import (
    AnnouncedTransfer,
    BookingApproval,
    DailyClose,
    LedgerEntry,
    Wallet,
    WalletClose,
)

NEWEST_FIRST: list[Any] = [
    Wallet,
    LedgerEntry,
    Order,
    VoucherCode,
    IdempotencyRecord,
    Announcement,
    Membership,
    Email,
    FileImport,
    ReconcileRun,
    RequestRecord,
    LostPurchase,
    CodeHold,
    BookingApproval,
    AnnouncedTransfer,
    DailyClose,
    WalletClose,
    PriceListEntry,
    StaffWarning,
    Case,
]
# The desk has buttons of its own, and shows the oldest first. The list of audit entries is the
# audit trail.
ALL: list[Any] = [*NEWEST_FIRST, Fulfilment, AuditEntry]
RECORDS = pytest.mark.parametrize("model", NEWEST_FIRST)


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with rows_for_a_module(django_db_blocker):
        World().grow(6)
        yield


@pytest.fixture
def browser(world: None, db: None) -> Client:
    return signed_in()


@pytest.mark.parametrize("model", ALL)
def test_a_superuser_cannot_add_change_or_delete(model: Any, browser: Client) -> None:
    meta = model._meta
    row = model.objects.latest("pk")
    before = list(model.objects.order_by("pk").values())

    added = browser.post(reverse(f"admin:{meta.app_label}_{meta.model_name}_add"), {})
    changed = browser.post(url(row), {"note": "x", "balance": "1", "amount": "1"})
    deleted = browser.post(url(row, "delete"), {"post": "yes"})
    action = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
    with without_frame(""):
        selected = browser.post(list_url(model), action)

    assert [added.status_code, changed.status_code, deleted.status_code] == [403, 403, 403]
    assert selected.status_code in (200, 302, 403)
    assert list(model.objects.order_by("pk").values()) == before


@RECORDS
def test_a_page_counts_only_up_to_the_cap(
    model: Any, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "cap", 5)
    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(list_url(model, _facets="True"))

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"]]
    assert counts
    assert [sql for sql in counts if " LIMIT 6" not in sql] == []
    which = "first" if model is Wallet else "newest"  # wallets are listed by account
    assert f"the {which} 5 " in answer.content.decode()


@RECORDS
def test_records_are_listed_newest_first(model: Any, browser: Client) -> None:
    with without_frame(""):
        rows = browser.get(list_url(model)).context["cl"].result_list

    keys = [row.pk for row in rows]
    assert keys == sorted(keys, reverse=True)


def test_every_record_model_is_covered() -> None:
    editable = {
        "accounts.account",
        "accounts.apiclient",
        "auth.group",
        "auth.user",
        "catalogue.batch",  # what people said of it; see tests/catalogue/test_batches.py
        "catalogue.category",
        "catalogue.pricelist",
        "catalogue.product",
        "catalogue.referencelink",
        "catalogue.shelf",
        "merchants.invitation",  # test_staff_invite.py withdraws one
        "figures.exchangerate",
        "merchants.emailedreport",
        "figures.stockthreshold",
        "telegram.announcementroute",
        "accounts.owncompany",
        "telegram.platformsettings",
        "telegram.telegramlink",
        "topups.topupproduct",
        "wallets.bankdetails",
        "wallets.bookinglimit",
        "warnings.warningrule",
    }
    shown = {model._meta.label_lower for model in admin.site._registry}

    assert shown - editable == {model._meta.label_lower for model in ALL}
