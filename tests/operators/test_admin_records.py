"""Records of money, sales and codes are read-only in the back office."""

from typing import Any

import pytest
from django.contrib import admin
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from audit.models import AuditEntry
from catalogue.models import VoucherCode
from idempotency.models import IdempotencyRecord
from merchants.models import Email, Membership
from operators.admin.base import CappedPaginator
from operators.models import Announcement, ReconcileRun
from orders.models import Order
from tests.neighbour import ours
from tests.operators.back_office import World, list_url, signed_in, url
from topups.models import Fulfilment
from wallets.models import LedgerEntry, Wallet

NEWEST_FIRST: list[Any] = [
    Wallet,
    LedgerEntry,
    Order,
    VoucherCode,
    IdempotencyRecord,
    AuditEntry,
    Announcement,
    Membership,
    Email,
    ReconcileRun,
]
# The desk has buttons of its own, and shows the oldest first.
ALL: list[Any] = [*NEWEST_FIRST, Fulfilment]
RECORDS = pytest.mark.parametrize("model", NEWEST_FIRST)


@pytest.fixture
def browser(db: None) -> Client:
    World().grow(1)
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
    selected = browser.post(list_url(model), action)

    assert [added.status_code, changed.status_code, deleted.status_code] == [403, 403, 403]
    assert selected.status_code in (200, 302, 403)
    assert list(model.objects.order_by("pk").values()) == before


@RECORDS
def test_a_page_counts_only_up_to_the_cap(
    model: Any, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CappedPaginator, "cap", 5)
    World().grow(8)

    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(list_url(model, _facets="True"))

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"]]
    assert [" LIMIT 6" in sql for sql in counts] == [True]
    assert "the newest 5 " in answer.content.decode()


@RECORDS
def test_records_are_listed_newest_first(model: Any, browser: Client) -> None:
    World().grow(2)

    rows = browser.get(list_url(model)).context["cl"].result_list

    keys = [row.pk for row in rows]
    assert keys == sorted(keys, reverse=True)


def test_every_record_model_is_covered() -> None:
    editable = {
        "accounts.account",
        "accounts.apiclient",
        "auth.group",
        "auth.user",
        "catalogue.category",
        "catalogue.product",
        "catalogue.referencelink",
        "catalogue.shelf",
        "merchants.invitation",  # can be withdrawn; see tests/merchants/test_staff_invite.py
        "operators.announcementroute",
        "operators.platformsettings",
        "operators.telegramlink",
        "topups.topupproduct",
    }
    shown = {model._meta.label_lower for model in admin.site._registry}

    assert shown - editable == {model._meta.label_lower for model in ALL}


@pytest.mark.parametrize(
    "sql", ["UPDATE audit_auditentry SET note = 'x'", "DELETE FROM audit_auditentry"]
)
def test_the_database_refuses_to_change_the_audit_trail(sql: str, browser: Client) -> None:
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_an_order_is_found_by_reference_and_by_name(browser: Client) -> None:
    World().grow(2)
    order = Order.objects.select_related("client__account").latest("pk")
    assert order.client.account is not None

    by_reference = browser.get(list_url(Order, q=order.reference.lower()))
    by_name = browser.get(list_url(Order, q=order.client.account.name))

    assert [row.pk for row in by_reference.context["cl"].result_list] == [order.pk]
    assert {row.client for row in by_name.context["cl"].result_list} == {order.client}


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("kind", "delivered"), [("voucher", "Code "), ("top_up", "Top-up for")])
def test_orders_are_filtered_by_kind(browser: Client, kind: str, delivered: str) -> None:
    (order,) = browser.get(list_url(Order, kind=kind)).context["cl"].result_list

    page = browser.get(url(order)).content.decode()

    assert delivered in page
    assert ("/reveal/" in page) == (kind == "voucher")


def test_a_code_is_found_by_its_order(browser: Client) -> None:
    order = ours(Order).latest("pk")

    found = browser.get(list_url(VoucherCode, q=order.reference)).context["cl"].result_list

    assert {row.order_id for row in found} == {order.pk}
    assert len(found) == 2


def test_a_ledger_entry_is_found_by_its_order(browser: Client) -> None:
    World().grow(1)
    order = ours(Order).latest("pk")

    found = browser.get(list_url(LedgerEntry, q=order.reference)).context["cl"].result_list

    assert [row.amount for row in found] == [-order.total_price]
