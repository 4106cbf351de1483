"""Exchange rates come from files: exported, changed, checked, confirmed, and imported."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from audit.models import AuditEntry
from core.backoffice.staff_roles import StaffRole
from core.files.table_files import write_table
from core.inputs import InputProblem
from figures.models import ExchangeRate
from operators.imports import table_imports
from operators.imports.models import FileImport, ImportState
from operators.imports.rate_file import COLUMNS, KIND
from operators.imports.table_imports import check_table
from tests.commands import run
from tests.operators.back_office import list_url, make_staff, signed_in, staff_with, url
from tests.operators.catalogue.test_price_list_files import confirm, uploaded, words_of
from tests.operators.pages.test_exports import content, headings_of

pytestmark = pytest.mark.django_db


def add(day: str, rate: str, currency: str = "EUR", into: str = "USD") -> ExchangeRate:
    return ExchangeRate.objects.create(
        currency=currency, into=into, day=date.fromisoformat(day), rate=Decimal(rate)
    )


def file_of(*lines: tuple[str, ...]) -> bytes:
    return b"".join(write_table("csv", COLUMNS, lines, is_imported=True))


def finance() -> User:
    return staff_with(StaffRole.FINANCE)


@pytest.mark.parametrize("format", ["csv", "xlsx"])
def test_exported_rates_change_nothing(format: str, tmp_path: Path) -> None:
    for day, rate in (("2026-01-01", "1.085"), ("2026-02-01", "0.0000000001"), ("2026-03-01", "2")):
        add(day, rate)
    add("2026-01-01", "17450.1234567891", "EUR", "IDR")
    browser, path = signed_in(finance()), tmp_path / f"rates.{format}"
    page = browser.get(reverse("admin:imports_fileimport_upload", args=["exchange_rates"]))
    path.write_bytes(content(browser.get(dict(page.context["exports"])[format.upper()])))
    before = list(ExchangeRate.objects.order_by("pk").values())

    checked = run("import_exchange_rates", path, "--check")

    assert (checked["doubts"], checked["changes"], checked["left"]) == ({}, [], 0)
    assert run("import_exchange_rates", path)["exchange_rates"]["unchanged"] == 4
    assert list(ExchangeRate.objects.order_by("pk").values()) == before


def test_the_files_have_the_names_of_the_columns() -> None:
    add("2026-01-01", "1.1")
    address = reverse("admin:figures_exchangerate_list_file", args=["xlsx"])
    assert headings_of(signed_in(finance()).get(address)) == [*COLUMNS]


def test_rates_are_checked_confirmed_and_imported() -> None:
    person = finance()
    old, kept = add("2026-01-01", "1.10"), add("2026-03-01", "1.20")
    lines = [
        ("EUR", "USD", "2026-02-01", "1.115"),
        ("EUR", "USD", "2026-01-01", "1.12"),
        ("EUR", "USD", "2026-04-01", "0.85"),
        ("EUR", "USD", "2026-05-01", "12.1"),
        ("EUR", "CHF", "2026-01-01", "0.95"),
    ]

    row = uploaded(person, file_of(*lines), "exchange_rates")

    assert row.result["counts"] == {"exchange_rates": {"created": 4, "updated": 1, "unchanged": 0}}
    assert (row.result["doubts"], row.result["left"]) == ([], 1)
    page = words_of(signed_in(person), row)
    order = [
        "EUR → USD rate far from the rate before 2026-05-01 \u2013 12.1",
        "EUR → USD rate other rate 2026-01-01 1.1 1.12",
        "EUR → USD rate 2026-02-01 \u2013 1.115",
        "EUR → USD rate 2026-04-01 \u2013 0.85",
        "EUR → CHF rate 2026-01-01 \u2013 0.95",
    ]
    places = [page.index(one) for one in order]
    assert places == sorted(places)
    assert "Cost" not in page
    assert ExchangeRate.objects.count() == 2

    assert "EUR to USD for codes of 2026-04-01 to 2026-04-01: 0.85 instead of 1.2" in confirm(
        person, row
    )
    assert (row.state, ExchangeRate.objects.count()) == (ImportState.READY, 2)
    person = finance()
    confirm(person, row)

    assert row.state == ImportState.IMPORTED
    old.refresh_from_db()
    kept.refresh_from_db()
    assert (old.rate, kept.rate) == (Decimal("1.12"), Decimal("1.2"))
    assert ExchangeRate.objects.get(day=date(2026, 5, 1)).rate == Decimal("12.1")
    (changed,) = AuditEntry.objects.filter(object_type="figures.exchangerate", action="changed")
    assert (changed.actor, changed.changes) == (person, {"rate": ["1.1", "1.12"]})
    added = AuditEntry.objects.filter(object_type="figures.exchangerate", action="added")
    assert {one.reference for one in added} >= {"EUR to CHF from 2026-01-01"}
    assert added.count() == 4


def test_a_rate_that_a_colleague_changed_meanwhile_is_noticed() -> None:
    person, rate = finance(), add("2026-01-01", "1.10")
    row = uploaded(person, file_of(("EUR", "USD", "2026-01-01", "1.12")), "exchange_rates")
    ExchangeRate.objects.filter(pk=rate.pk).update(rate=Decimal("1.11"))

    page = confirm(person, row)

    assert row.state == ImportState.READY
    assert "What would change is not what the last check showed" in page
    assert "other rate 2026-01-01 1.11 1.12" in page
    rate.refresh_from_db()
    assert rate.rate == Decimal("1.11")


def test_a_point_between_thousands_is_doubted_where_no_rate_is_near() -> None:
    add("2026-01-01", "17000", "EUR", "IDR")
    near, far = ("EUR", "IDR", "2026-02-01", "17.450"), ("EUR", "VND", "2026-02-01", "27.450")
    doubts = check_table(KIND, file_of(near))["doubts"] + check_table(KIND, file_of(far))["doubts"]
    assert ["17450" in doubts[0], "27450" in doubts[1]] == [True, True]
    add("2026-01-02", "17", "EUR", "IDR")
    assert check_table(KIND, file_of(near))["doubts"] == []


def test_who_changes_rates_by_form_does_so_by_file() -> None:
    address = reverse("admin:imports_fileimport_upload", args=["exchange_rates"])
    rights = ["figures.add_exchangerate", "figures.change_exchangerate"]
    for some in (rights[:1], rights[1:], ["imports.import_catalogue", "imports.view_fileimport"]):
        assert signed_in(make_staff(*some)).get(address).status_code == 403
    person = make_staff(*rights)
    row = uploaded(person, file_of(("EUR", "USD", "2026-01-01", "1.12")), "exchange_rates")
    keeper = signed_in(staff_with(StaffRole.STOCK_KEEPER))
    confirming = reverse("admin:imports_fileimport_step", args=[row.pk, "confirm"])
    assert keeper.post(confirming).status_code == 403
    assert signed_in(person).get(list_url(FileImport)).status_code == 200
    assert signed_in(person).get(url(row)).status_code == 200
    confirm(person, row)
    assert ExchangeRate.objects.get().rate == Decimal("1.12")


def test_a_file_with_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_imports, "MOST_ROWS", 2)
    lines = [("EUR", "USD", f"2026-01-0{day}", "1.08") for day in (1, 2, 3)]
    assert check_table(KIND, file_of(*lines[:2]))["counts"]["exchange_rates"]["created"] == 2
    with pytest.raises(InputProblem, match="more than 2 rows"):
        check_table(KIND, file_of(*lines))
