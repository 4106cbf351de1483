"""Every list of the back office is downloaded as its filter shows it."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import openpyxl
import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse, reverse_lazy
from django.utils import timezone, translation
from django.utils.text import capfirst
from django.utils.translation import gettext
from pytest_django import DjangoDbBlocker

from accounts.models import ApiClient, RequestRecord
from accounts.preferences.time_zones import LANGUAGE_IN_SESSION
from audit.models import AuditAction, AuditEntry
from catalogue.models import Batch, VoucherCode
from core.files.table_files import HEADINGS
from merchants.models import Email
from operators.frame import exports
from operators.frame.long_lists import LOOKED_AT
from operators.money.ledger import LedgerEntryAdmin
from operators.sales.report_files import MARGINS
from orders.models import Order
from tests.factories import make_account
from tests.operators.back_office import (
    World,
    list_url,
    make_staff,
    rows_for_a_module,
    shown_models,
    signed_in,
    url,
)
from wallets.models import DailyClose, LedgerEntry

# Their lists lead to another page: the audit trail, which has a file of its own, and the only row.
ELSEWHERE = {"accounts.owncompany", "audit.auditentry", "telegram.platformsettings"}
OF_THE_READER = {"merchants.emailedreport"}  # everybody sees only their own rows


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with rows_for_a_module(django_db_blocker):
        world = World()
        world.grow(2)
        yield world


@pytest.fixture
def browser(world: World, db: None) -> Client:
    return signed_in()


def address(model: Any, format: str = "csv", query: str = "") -> str:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_list_file"
    return reverse(name, args=[format]) + query


def content(answer: Any) -> bytes:
    assert answer.status_code == 200, answer.headers
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def lines(answer: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content(answer).decode("utf-8-sig"))))


def test_a_file_is_the_same_in_each_language(
    browser: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)  # files tell how long ago
    models = [model for model in shown_models() if model._meta.label_lower not in ELSEWHERE]
    files = [*map(address, models), reverse("margins_file"), reverse("audit_trail_file")]
    files.append(url(Batch.objects.latest("pk"), "recall_file"))
    english = [content(browser.get(name)).splitlines() for name in files]
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()
    for name, lines_before in zip(files, english, strict=True):
        # The trail has a line more, about the first file.
        assert set(lines_before) <= set(content(browser.get(name)).splitlines()), name


def test_a_workbook_has_its_headings_in_the_readers_language(browser: Client, world: World) -> None:
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()
    for model in shown_models():
        if model._meta.label_lower in ELSEWHERE:
            continue
        (names, *_) = csv.reader(
            io.StringIO(content(browser.get(address(model))).decode("utf-8-sig"))
        )
        page: Any = admin.site._registry[model]
        if page.is_imported:
            assert headings_of(browser.get(address(model, "xlsx"))) == names
            continue
        assert not page.export_columns or set(names) <= set(HEADINGS), model
        with translation.override("de"):
            german = [capfirst(gettext(name)) for name in names]
        assert headings_of(browser.get(address(model, "xlsx"))) == german
    margins = headings_of(browser.get(reverse("margins_file", query={"format": "xlsx"})))

    assert headings_of(browser.get(address(Order, "xlsx")))[:3] == [
        *("Konto", "Referenz", "Idempotenzschlüssel")
    ]
    assert margins[:4] == ["Name", "Währung", "Verkauft", "Umsatz"]
    assert set(MARGINS.values()) <= set(HEADINGS)


def headings_of(answer: Any) -> list[Any]:
    (sheet,) = openpyxl.load_workbook(io.BytesIO(content(answer))).worksheets
    return [cell.value for cell in sheet[1]]


def test_every_list_leads_to_its_files(browser: Client, world: World) -> None:
    without = set()
    for model in shown_models():
        if model._meta.label_lower in OF_THE_READER:
            continue
        answer = browser.get(list_url(model))
        if model._meta.label_lower in ELSEWHERE:
            assert answer.status_code == 302
            continue
        page = answer.content.decode()
        if not all(address(model, one).replace("&", "&amp;") in page for one in ("csv", "xlsx")):
            without.add(model._meta.label_lower)
            continue
        found = answer.context["cl"].result_count
        rows = lines(browser.get(address(model)))
        if len(rows) != found:  # a server wrote request records of an earlier test's clients
            RequestRecord.objects.exclude(client__in=ApiClient.objects.values("pk")).delete()
            found = browser.get(list_url(model)).context["cl"].result_count
            rows = lines(browser.get(address(model)))
        assert len(rows) == found, model
        sheet = openpyxl.load_workbook(io.BytesIO(content(browser.get(address(model, "xlsx")))))
        assert sheet.worksheets[0].max_row == found + 1, model
        texts = content(browser.get(address(model))).decode()
        assert not [one for one in (*world.codes, *world.keys) if one in texts], model
        assert "</" not in texts, model

    assert not without


def test_a_file_has_the_rows_of_the_filter(browser: Client) -> None:
    order = Order.objects.latest("pk")
    query = f"?client__id__exact={order.client_id}"

    rows = lines(browser.get(address(Order, query=query)))

    theirs = Order.objects.filter(client=order.client_id).order_by("-pk")
    assert [row["reference"] for row in rows] == [one.reference for one in theirs]
    assert rows[0]["total_price"] == str(order.total_price.normalize())
    page = browser.get(list_url(Order) + query).content.decode()
    assert address(Order, query=query) in page


def test_a_file_reaches_beyond_the_rows_that_a_list_looks_at(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.frame.long_lists.LOOKED_AT", 1)
    monkeypatch.setattr(LedgerEntryAdmin, "served", ())  # as if no index served the filter
    purchases = LedgerEntry.objects.filter(kind="purchase").order_by("-pk")
    span = purchases[0].pk - purchases.reverse()[0].pk
    monkeypatch.setattr(exports, "IDS_AT_ONCE", max(2, span // 3))
    assert LOOKED_AT > 1
    query = "?kind__exact=purchase"

    shown = browser.get(list_url(LedgerEntry) + query).context["cl"].result_count
    rows = lines(browser.get(address(LedgerEntry, query=query)))

    assert shown < purchases.count()
    assert [row["id"] for row in rows] == [str(entry.pk) for entry in purchases]


def test_a_file_is_read_in_chunks(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "CHUNK", 2)

    rows = lines(browser.get(address(LedgerEntry)))

    assert len(rows) == LedgerEntry.objects.count()


def test_names_cannot_be_formulas(browser: Client) -> None:
    account = make_account()
    type(account).objects.filter(pk=account.pk).update(name="=HYPERLINK(1)")

    assert "'=HYPERLINK(1)" in content(browser.get(address(type(account)))).decode()


def test_each_download_is_in_the_audit_trail_without_the_search(browser: Client) -> None:
    browser.get(address(Order, query="?kind=voucher&q=player-77"))
    browser.get(reverse("audit_trail_file"))

    entries = AuditEntry.objects.filter(action=AuditAction.EXPORTED).order_by("pk")
    assert [(entry.reference, entry.note) for entry in entries] == [
        ("orders.csv", "kind voucher"),
        ("audit-trail.csv", ""),
    ]
    assert {entry.actor for entry in entries} == {entries[0].actor}


@pytest.mark.parametrize(
    "file",
    [reverse_lazy("admin:orders_order_list_file", args=["csv"]), reverse_lazy("margins_file")],
)
def test_a_parameter_with_nul_is_in_the_audit_trail_without_it(browser: Client, file: str) -> None:
    assert browser.get(f"{file}?e=a%00b").status_code == 200

    assert AuditEntry.objects.latest("pk").note == "e ab"


def test_a_file_needs_the_right_to_export_and_to_see_the_list(browser: Client) -> None:
    reader = signed_in(make_staff("orders.view_order"))
    exporter = signed_in(make_staff("audit.export_lists", "orders.view_order"))

    assert reader.get(address(Order)).status_code == 403
    assert address(Order) not in reader.get(list_url(Order)).content.decode()
    assert exporter.get(address(Order)).status_code == 200
    assert exporter.get(address(VoucherCode)).status_code == 403
    assert exporter.get(address(Order, "pdf")).status_code != 200


def test_a_filter_that_is_not_valid_leads_back(browser: Client) -> None:
    assert browser.get(address(Order, query="?client__id__exact=x")).status_code == 302


@pytest.mark.parametrize("model", [LedgerEntry, Order, Email])
@pytest.mark.parametrize(
    "query",
    [
        "?created_at_from_0=0001-01-01&created_at_from_1=00:00:00",
        "?created_at_to_0=9999-12-31&created_at_to_1=23:59:59",
    ],
)
def test_a_period_to_the_end_of_the_calendar_has_all_rows(
    browser: Client, model: Any, query: str
) -> None:
    number = model.objects.count()

    assert browser.get(list_url(model) + query).context["cl"].result_count == number
    assert len(lines(browser.get(address(model, query=query)))) == number


@pytest.mark.parametrize(
    ("model", "query"), [(DailyClose, "?currency=%00"), (Order, "?client__account=%00")]
)
def test_a_filter_that_the_database_refuses_is_not_valid(
    browser: Client, model: Any, query: str
) -> None:
    for page in (list_url(model), address(model)):
        answer = browser.get(page + query)
        assert (answer.status_code, answer["Location"]) == (302, f"{list_url(model)}?e=1")
