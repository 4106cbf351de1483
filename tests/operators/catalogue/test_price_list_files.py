"""Prices of price lists come from files: exported, changed, checked, confirmed, and imported."""

import csv
import io
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from accounts.preferences.time_zones import LANGUAGE_IN_SESSION
from audit.models import AuditEntry
from catalogue.models import Batch, PriceList, PriceListEntry, Product, Shelf
from catalogue.price_lists import Target, Terms, add_price_entry
from core.backoffice.staff_roles import StaffRole
from core.files.doubts import doubt_id
from core.files.table_files import exact_time, write_table
from core.inputs import InputProblem
from operators.imports import jobs
from operators.imports.models import FileImport, ImportState
from operators.imports.price_list_file import COLUMNS, KIND
from operators.imports.table_imports import check_table, import_table
from tests.commands import refusal, run, run_confirmed
from tests.factories import (
    make_batch,
    make_category,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.operators.back_office import (
    list_url,
    make_staff,
    signed_in,
    staff_with,
    text_of,
    url,
)
from tests.operators.pages.test_exports import content, headings_of

pytestmark = pytest.mark.django_db

LATER = "2031-01-01T00:00:00Z"
LATEST = "2032-01-01T00:00:00Z"


@pytest.fixture
def gold() -> PriceList:
    return PriceList.objects.create(name="Gold", currency="USD")


@pytest.fixture
def boss() -> User:
    return make_staff(superuser=True)


def line(gold: PriceList, **values: object) -> dict[str, object]:
    """A line of a file about everything, with these values instead."""
    common = {"price_list": gold.pk, "about": "everything", "terms": "percent", "percent_off": "5"}
    if values.get("about", "everything") != "everything" or "terms" in values:
        del common["percent_off"]
    return {**common, "currency": gold.currency, **values}


def fixed(gold: PriceList, product: Product, price: str, **values: object) -> dict[str, object]:
    return line(gold, about="product", id=product.pk, terms="fixed", price=price, **values)


def file_of(*lines: Mapping[str, object], format: str = "csv") -> bytes:
    cells = ([one.get(name, "") for name in COLUMNS] for one in lines)
    return b"".join(write_table(format, COLUMNS, cells, is_imported=True))


def add(gold: PriceList, boss: User, *, until: str = "", **values: Any) -> PriceListEntry:
    terms = Terms(
        **{name: values.pop(name) for name in list(values) if name in Terms.__annotations__}
    )
    since = values.pop("since", None)
    return add_price_entry(
        price_list_id=gold.pk,
        target=Target(**values),
        terms=terms,
        actor=boss,
        valid_from=since and datetime.fromisoformat(since),
        valid_until=datetime.fromisoformat(until) if until else None,
    )


def exported(person: User, format: str, gold: PriceList) -> bytes:
    browser = signed_in(person)
    page = browser.get(reverse("admin:imports_fileimport_upload", args=["price_lists"]))
    addresses = dict(page.context["exports"])
    return content(browser.get(addresses[format.upper()]))


def read_lines(file: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(file.decode("utf-8-sig"))))


def stored(gold: PriceList) -> list[tuple[Any, ...]]:
    names = ("target", "for_sale", "price", "percent_off", "valid_from", "valid_until")
    return list(gold.entries.order_by("pk").values_list("pk", *names))


def said(file: bytes) -> str:
    """The problems or the doubts of a file."""
    try:
        result = check_table(KIND, file)
    except InputProblem as problem:
        return "; ".join(problem.problems)
    return " ".join(result["doubts"])


def imported(file: bytes, boss: User) -> dict[str, Any]:
    doubts = check_table(KIND, file)["doubts"]
    return import_table(KIND, file, actor=boss, confirmed=[doubt_id(one) for one in doubts])


def full_list(gold: PriceList, boss: User) -> None:
    """Prices of all kinds of targets and terms: past, present and later."""
    odd = make_product(price="9.995", category=make_category())
    Product.objects.filter(pk=odd.pk).update(name='\'=Odd "card"; a,b ')
    variation = make_variation(odd, price="20")
    shelf = Shelf.objects.get(variation=variation)
    add(gold, boss, percent_off=Decimal("12.5"))
    add(gold, boss, product_id=odd.pk, price=Decimal("1.255"))
    add(gold, boss, product_id=odd.pk, price=Decimal("9.5"), until=LATEST)
    add(gold, boss, shelf_id=shelf.pk, for_sale=False, since=LATER)
    add(gold, boss, shelf_id=own_shelf(odd).pk, price=Decimal("9.1255"))
    add(gold, boss, category_id=odd.category_id, percent_off=Decimal(5), since=LATER, until=LATEST)
    add(gold, boss, topup_product_id=make_topup_product().pk)


# --- The way back --------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "xlsx"])
def test_an_exported_list_changes_nothing(
    format: str, gold: PriceList, boss: User, tmp_path: Path
) -> None:
    full_list(gold, boss)
    other = PriceList.objects.create(name="Silver", currency="EUR")
    add(other, boss, for_sale=False)
    before = stored(gold)
    file = exported(staff_with(StaffRole.STOCK_KEEPER), format, gold)

    result = check_table(KIND, file)

    assert (result["doubts"], result["changes"], result["left"]) == ([], [], 0)
    assert result["counts"] == {"prices_in_lists": {"created": 0, "updated": 0, "unchanged": 7}}
    path = tmp_path / f"prices.{format}"
    path.write_bytes(file)
    assert run("import_price_lists", path)["prices_in_lists"]["unchanged"] == 7
    assert stored(gold) == before


def test_ended_prices_may_be_in_the_file(gold: PriceList, boss: User) -> None:
    full_list(gold, boss)
    address = reverse("admin:catalogue_pricelistentry_list_file", args=["csv"])
    file = content(signed_in(boss).get(address, {"price_list__id__exact": gold.pk}))
    assert check_table(KIND, file)["counts"]["prices_in_lists"]["unchanged"] == 7
    lines = read_lines(file)
    ended = next(one for one in lines if one["price"] == "1.255")
    assert "since: this price has ended" in said(file_of({**ended, "price": "1.26"}))


def test_the_headings_are_the_same_in_german(gold: PriceList, boss: User) -> None:
    full_list(gold, boss)
    browser = signed_in(boss)
    session = browser.session
    session[LANGUAGE_IN_SESSION] = "de"
    session.save()
    address = reverse("admin:catalogue_pricelistentry_list_file", args=["xlsx"])
    assert headings_of(browser.get(address)) == [*COLUMNS]


# --- Changes -------------------------------------------------------------------------------------


def changes_of(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    names = ("danger", "name", "value", "before", "after", "since")
    return [tuple(one[name] for name in names) for one in result["changes"]]


def test_each_change_is_shown_and_made(gold: PriceList, boss: User) -> None:
    product, other = make_product(price="10.00"), make_product(price="20.00")
    entry = add(gold, boss, product_id=product.pk, price=Decimal("9"))
    kept = add(gold, boss, product_id=other.pk, percent_off=Decimal(10))
    file = file_of(
        fixed(gold, product, "8.50", since=exact_time(entry.valid_from), until=LATER),
        line(gold, about="shelf", id=own_shelf(other).pk, terms="none", since=LATEST),
    )

    checked = check_table(KIND, file)

    assert [one[0] for one in stored(gold)] == [entry.pk, kept.pk]
    assert checked["left"] == 1
    assert checked["counts"] == {"prices_in_lists": {"created": 1, "updated": 1, "unchanged": 0}}
    about, about_shelf = (
        f"{product} (product {product.pk})",
        f"{other} (shelf {own_shelf(other).pk})",
    )
    assert changes_of(checked) == [
        ("lower price", str(product), "price", "9.00", "8.50", ""),
        ("switched on or off", str(other), "price", "18.00", "", LATEST),
        ("", str(product), "price", "9.00", "10.00", LATER),
        ("", about, "terms", "fixed 9.00", "fixed 8.50", ""),
        ("", about, "until", "", LATER, ""),
        ("", about_shelf, "terms", "", "none", LATEST),
    ]
    assert {one["list"] for one in checked["changes"]} == {"Gold"}

    result = import_table(KIND, file, actor=boss, seen=checked["digest"])

    assert result == checked
    entry.refresh_from_db()
    kept.refresh_from_db()
    new = gold.entries.get(product=product, price=Decimal("8.5"))
    assert (entry.price, entry.valid_until) == (Decimal(9), new.valid_from)
    assert kept.valid_until is None
    assert new.added_by == f"admin:{boss.username}"
    assert gold.entries.get(shelf=own_shelf(other)).valid_from == datetime(2032, 1, 1, tzinfo=UTC)
    assert check_table(KIND, file_of(fixed(gold, product, "8.50", until=LATER)))["changes"] == []
    audited = AuditEntry.objects.filter(actor=boss, object_id=str(new.pk)).get()
    assert audited.changes["fixed_price"] == [None, "8.50"]


def test_terms_and_ends_move_as_the_file_says(gold: PriceList, boss: User) -> None:
    one, two, three, four = (make_product(price="10.00") for _ in range(4))
    held = add(gold, boss, product_id=one.pk, price=Decimal("9"))
    longer = add(gold, boss, product_id=two.pk, price=Decimal("9"), until=LATER)
    later = add(gold, boss, product_id=three.pk, price=Decimal("9"), since=LATER)
    gone = add(gold, boss, product_id=four.pk, price=Decimal("9"), since=LATER)
    file = file_of(
        fixed(gold, one, "9", until="now"),
        fixed(gold, two, "9.00", since=exact_time(longer.valid_from)[:19] + "Z"),
        fixed(gold, three, "8.80", since=LATER[:10]),
        fixed(gold, four, "9", since="2031-01-01 01:00+01:00", until="NOW"),
    )

    result = imported(file, boss)

    assert result["left"] == 0
    assert [change[2:] for change in changes_of(result) if change[1].endswith(")")] == [
        ("until", "", "now", ""),
        ("until", LATER, "", ""),
        ("terms", "fixed 9.00", "fixed 8.80", LATER),
        ("terms", "fixed 9.00", "", LATER),
    ]
    for entry in (held, longer):
        entry.refresh_from_db()
    assert held.valid_until is not None
    assert held.valid_until < datetime.now(UTC) + timedelta(minutes=1)
    assert longer.valid_until is None
    assert not gold.entries.filter(pk__in=[later.pk, gone.pk]).exists()
    assert gold.entries.get(product=three).price == Decimal("8.80")


def test_a_file_that_people_write_changes_nothing_the_second_time(
    gold: PriceList, boss: User
) -> None:
    product = make_product(price="10.00")
    file = file_of(
        fixed(gold, product, "8", since=LATEST),
        fixed(gold, product, "9"),
        fixed(gold, product, "8.50", since=LATER),
    )
    assert imported(file, boss)["counts"]["prices_in_lists"]["created"] == 3
    assert [one.price for one in gold.entries.order_by("valid_from")] == [9, Decimal("8.5"), 8]

    assert imported(file, boss)["counts"]["prices_in_lists"] == {
        **{"created": 0, "updated": 0, "unchanged": 3}
    }


def test_a_price_of_today_ends_where_a_later_one_begins(gold: PriceList, boss: User) -> None:
    product = make_product(price="10.00")
    held = add(gold, boss, product_id=product.pk, price=Decimal("9"))
    imported(file_of(fixed(gold, product, "8", since=LATER)), boss)
    held.refresh_from_db()
    assert held.valid_until == datetime.fromisoformat(LATER)


# --- In the browser ------------------------------------------------------------------------------


def uploaded(person: User, file: bytes, kind: str = "price_lists") -> FileImport:
    """An import by the form of the page, checked."""
    browser = signed_in(person)
    address = reverse("admin:imports_fileimport_upload", args=[kind])
    answer = browser.post(address, {"file": SimpleUploadedFile("new.csv", file), "form": uuid4()})
    assert answer.status_code == 302, text_of(answer)
    made = FileImport.objects.latest("pk")
    jobs.run_import(pk=made.pk)
    made.refresh_from_db()
    return made


def words_of(browser: Client, row: FileImport) -> str:
    """The words of the page of an import."""
    return " ".join(strip_tags(text_of(browser.get(url(row))).replace("<", " <")).split())


def confirm(person: User, row: FileImport) -> str:
    """The words of the page after this person confirmed everything, and a worker went on."""
    browser = signed_in(person)
    doubts = [doubt_id(one) for one in row.result["doubts"]]
    address = reverse("admin:imports_fileimport_step", args=[row.pk, "confirm"])
    assert browser.post(address, {"doubt": doubts, "seen": row.version}).status_code == 302
    jobs.run_import(pk=row.pk)
    row.refresh_from_db()
    return words_of(browser, row)


def keeper() -> User:
    return staff_with(StaffRole.STOCK_KEEPER)


def test_a_file_is_checked_confirmed_and_imported(gold: PriceList, boss: User) -> None:
    product, person = make_product(price="10.00", codes=1), keeper()
    add(gold, boss, for_sale=True)
    make_batch(own_shelf(product))
    Batch.objects.update(unit_cost=Decimal("9.25"), cost_currency="USD")
    row = uploaded(person, file_of(fixed(gold, product, "9.50", since=LATER)))

    assert row.state == ImportState.READY
    page = words_of(signed_in(person), row)
    for words in (
        "1 stored row is not in the file. It stays as it is.",
        f"{product} Gold price lower price 2031-01-01 00:00 UTC 10.00 9.50 9.2500 0.2500",
        "Make these changes",
    ):
        assert words in page
    assert not gold.entries.filter(product=product).exists()

    page = confirm(person, row)

    assert row.state == ImportState.IMPORTED
    assert "The file was imported. Changes: " in page
    assert gold.entries.get(product=product).added_by == f"admin:{person.username}"


def test_costs_are_for_people_who_may_see_them(gold: PriceList, boss: User) -> None:
    product = make_product(price="10.00", codes=1)
    make_batch(own_shelf(product))
    Batch.objects.update(unit_cost=Decimal("9.25"), cost_currency="USD")
    row = uploaded(boss, file_of(fixed(gold, product, "9.00")))
    changes = reverse("admin:imports_fileimport_changes", args=[row.pk])
    prices = "catalogue.change_pricelistentry"
    for rights, sees in (([], False), (["catalogue.view_batch"], True)):
        browser = signed_in(make_staff(prices, *rights))
        page, file = words_of(browser, row), content(browser.get(changes)).decode()
        assert ("9.2500 -0.2500" in page, "cost,margin" in file) == (sees, sees)
        assert ("9.2500" in file) is sees
        assert "9.00" in page


def test_who_changes_prices_by_form_does_so_by_file(gold: PriceList) -> None:
    file = file_of(line(gold, terms="none"))
    address = reverse("admin:imports_fileimport_upload", args=["price_lists"])
    other = ["imports.view_fileimport", "imports.import_catalogue", "catalogue.view_pricelistentry"]
    for rights in ([], other):
        browser = signed_in(make_staff(*rights))
        assert browser.get(address).status_code == 403
        assert browser.post(address, {"file": SimpleUploadedFile("x", file)}).status_code == 403
    person = make_staff("catalogue.change_pricelistentry")
    row = uploaded(person, file)
    reader = signed_in(make_staff(*other))
    confirming = reverse("admin:imports_fileimport_step", args=[row.pk, "confirm"])
    assert reader.get(url(row)).status_code == 200
    assert reader.post(confirming).status_code == 403
    finance = signed_in(staff_with(StaffRole.FINANCE))
    assert finance.get(url(row)).status_code == 302  # to the first page: there is no such import
    assert finance.post(confirming).status_code == 403
    assert row.file_name not in text_of(finance.get(list_url(FileImport)))
    assert row.file_name in text_of(signed_in(person).get(list_url(FileImport)))
    confirm(person, row)
    assert not gold.entries.get().for_sale


def test_a_change_meanwhile_is_noticed(gold: PriceList, boss: User) -> None:
    product, person = make_product(price="10.00"), keeper()
    row = uploaded(person, file_of(fixed(gold, product, "9.50")))
    Shelf.objects.filter(product=product).update(price=Decimal("9.75"))

    page = confirm(person, row)

    assert row.state == ImportState.READY
    assert "What would change is not what the last check showed" in page
    assert "9.75 9.50" in page
    assert not gold.entries.exists()
    old = copy(row)
    Shelf.objects.filter(product=product).update(price=Decimal("9.60"))
    confirm(person, row)
    assert "already continued this import" in confirm(person, old)  # by a page of before
    assert row.state == ImportState.READY
    assert not gold.entries.exists()
    assert "The file was imported" in confirm(person, row)
    assert gold.entries.get().price == Decimal("9.5")


def test_a_price_that_a_colleague_changed_is_not_overwritten(gold: PriceList, boss: User) -> None:
    product, person = make_product(price="10.00"), keeper()
    entry = add(gold, boss, product_id=product.pk, price=Decimal(9))
    file = file_of(fixed(gold, product, "8.90", since=exact_time(entry.valid_from)))
    row = uploaded(person, file)
    add(gold, boss, product_id=product.pk, price=Decimal("8.80"))

    page = confirm(person, row)

    assert (row.state, gold.entries.count()) == (ImportState.REFUSED, 2)
    assert "line 2, since: this price has ended and stays as it is" in page
    assert uploaded(person, file).state == ImportState.REFUSED


def test_a_low_price_of_a_list_waits_for_a_second_person(gold: PriceList) -> None:
    product, first = make_product(price="10.00"), keeper()
    row = uploaded(first, file_of(fixed(gold, product, "2.00", since=LATER)))

    assert "needs a second person" in confirm(first, row)
    confirm(first, row)
    assert not gold.entries.exists()
    assert "The file was imported" in confirm(keeper(), row)

    assert gold.entries.get().price == 2


def test_a_second_person_agrees_to_one_file(gold: PriceList) -> None:
    """The low price is the same, but it would never end."""
    product, first, second = make_product(price="10.00"), keeper(), keeper()
    row = uploaded(first, file_of(fixed(gold, product, "2.00", until=LATER)))
    assert "needs a second person" in confirm(first, row)

    for_ever = uploaded(second, file_of(fixed(gold, product, "2.00")))

    assert "needs a second person" in confirm(second, for_ever)
    assert not gold.entries.exists()
    assert "The file was imported" in confirm(second, row)
    assert gold.entries.get().valid_until == datetime.fromisoformat(LATER)


def test_the_shell_refuses_a_low_price(gold: PriceList, tmp_path: Path) -> None:
    product, path = make_product(price="10.00"), tmp_path / "prices.csv"
    path.write_bytes(file_of(fixed(gold, product, "2.00")))
    assert run("import_price_lists", path, "--check")["changes"][0]["danger"] == "lower price"
    assert "Have two members of staff set it" in refusal("import_price_lists", path)
    assert not gold.entries.exists()


def test_the_shell_imports_and_names_who_did_it(gold: PriceList, tmp_path: Path) -> None:
    product, path = make_product(price="10.00"), tmp_path / "prices.csv"
    path.write_bytes(file_of(fixed(gold, product, "9.500")))
    checked = run("import_price_lists", path, "--check")
    assert (len(checked["doubts"]), checked["prices_in_lists"]["created"]) == (1, 1)
    assert "[" in refusal("import_price_lists", path)
    assert not gold.entries.exists()

    run_confirmed("import_price_lists", path)

    entry = gold.entries.get()
    assert entry.added_by.startswith("shell:")
    audited = AuditEntry.objects.get(object_type="catalogue.pricelistentry")
    assert audited.actor_name == entry.added_by


def test_all_or_nothing(gold: PriceList, boss: User) -> None:
    product = make_product(price="10.00")
    add(gold, boss, product_id=product.pk, price=Decimal(9), since=LATER)
    file = file_of(line(gold, terms="regular"), fixed(gold, product, "9.50", until=LATEST))
    assert said(file).startswith("line 3: A later price of the list overlaps this one.")
    with pytest.raises(InputProblem):
        import_table(KIND, file, actor=boss)
    assert gold.entries.count() == 1


def test_rows_that_overlap_or_repeat_a_price_are_named(gold: PriceList, boss: User) -> None:
    product = make_product(price="10.00")
    entry = add(gold, boss, product_id=product.pk, price=Decimal(9))
    same = fixed(gold, product, "9", since=exact_time(entry.valid_from))
    later = fixed(gold, product, "8", since=LATER)
    for lines, problem in (
        ((same, fixed(gold, product, "9.1")), "line 3: repeats line 2"),
        (({**same, "until": LATEST}, later), "line 2, until: the price in line 3 begins before"),
        (({**same, "until": LATER}, {**later, "until": "2031"}), "2031 is not a time"),
        (({**later, "until": "2030-12-31"},), "until: the price ends before it begins"),
        (({**same, "price": "8", "until": "now"},), "terms: a price that ends now keeps its terms"),
        (({**same, "until": "2020-01-01T00:00"},), "until: "),
    ):
        assert problem in said(file_of(*lines)), problem
