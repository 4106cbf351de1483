"""An exported catalogue changes nothing when it is imported again, in the shell and the browser."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from openpyxl import Workbook

from audit.models import AuditAction, AuditEntry
from catalogue.models import Category, Product, Shelf, ShelfPriceChange
from core.files.doubts import doubt_id
from core.numbers import NOT_PLAIN
from operators.imports import jobs
from operators.imports.catalogue_table import parse_table
from operators.imports.models import ImportState
from tests.commands import refusal, run, run_confirmed
from tests.factories import (
    make_category,
    make_field,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.operators.back_office import make_staff, signed_in
from tests.operators.catalogue.test_file_imports import confirmed, now, upload
from topups.models import TopUpField, TopUpProduct

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]

NAMES = ["=1+1", "'=1", "''-x", "'quoted", ' a "b";c,d\te ', "+é ☃", "-", "x\ny", "007", "true"]
# What spreadsheets take for something else, and marks that readers remove.
NAMES += ["1.50", "3/4", "1 May", "10:30", "5%", "1e5", ".5", "'n Sync", '"quoted"', '="001"']
NAMES += [
    "_x0041_",
    "_x005F_x0041_",
    "a\r\nb",
    "a\rb",
    "5 EUR card",
    "'007",
    "May 2024",
    "'May 5",
    "Mayhem 5",
]


@pytest.fixture
def names() -> list[str]:
    """A catalogue with names and values that a table could lose."""
    category = make_category()
    for number, name in enumerate(NAMES):
        product = make_product(price=str(Decimal("9.9905") + number))
        Product.objects.filter(pk=product.pk).update(name=name)
        variation = make_variation(product, price=None)
        type(variation).objects.filter(pk=variation.pk).update(name=name, active=False)
    Product.objects.update(category=category, type="voucher")
    Category.objects.update(name="Cards, and more")
    Shelf.objects.filter(variation=None).update(quantity_step=3)
    bare = make_product(price=None)
    Product.objects.filter(pk=bare.pk).update(category=None, type=None, active=False)
    topup = make_topup_product(available_stock=5)
    field = make_field(topup)
    TopUpField.objects.filter(pk=field.pk).update(label="Server; wo?", required=False)
    other = make_topup_product()
    TopUpProduct.objects.filter(pk=other.pk).update(
        external_provider="'=provider", published=False, announce=True
    )
    return NAMES


@pytest.mark.parametrize("ending", ["csv", "xlsx", "json"])
def test_a_round_trip_in_the_shell_changes_nothing(
    names: list[str], ending: str, tmp_path: Path
) -> None:
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    run("export_catalogue", first)
    before = AuditEntry.objects.count(), ShelfPriceChange.objects.count()

    counts = run_confirmed("import_catalogue", first)  # a product is called "-"

    for kind in counts.values():
        assert (kind["created"], kind["updated"]) == (0, 0)
    assert counts["products"]["unchanged"] == counts["variations"]["unchanged"] + 1
    entries = AuditEntry.objects.order_by("pk")[before[0] :]
    assert [one.action for one in entries] == [AuditAction.PRODUCTS_IMPORTED]
    assert ShelfPriceChange.objects.count() == before[1]
    run("export_catalogue", second)
    if ending == "xlsx":  # an archive says when it was made
        assert parse_table(second.read_bytes()) == parse_table(first.read_bytes())
    else:
        assert second.read_bytes() == first.read_bytes()
    assert set(names) <= set(Product.objects.values_list("name", flat=True))


@pytest.mark.parametrize("ending", ["csv", "xlsx", "json"])
def test_a_round_trip_in_the_browser_changes_nothing(names: list[str], ending: str) -> None:
    staff = make_staff(superuser=True)
    address = reverse("admin:imports_fileimport_export", args=[ending])
    browser = signed_in(staff)
    file = browser.get(address)
    assert file.headers["Content-Disposition"] == f'attachment; filename="catalogue.{ending}"'
    exported = AuditEntry.objects.get(action=AuditAction.EXPORTED)
    assert (exported.actor, exported.note) == (staff, f"Catalogue as {ending.upper()}")

    row = upload(staff, file.content, None)
    doubts = [doubt_id(one) for one in row.result["doubts"]]
    assert jobs.confirm_import(pk=row.pk, actor=staff, seen=now(row).version, confirmed=doubts)
    row = now(row, run=True)

    assert row.state == ImportState.IMPORTED
    assert row.result["changes"] == []
    assert row.result["prices"] == []
    changed = [one["updated"] + one["created"] for one in row.result["counts"].values()]
    assert changed == [0] * len(changed)
    if ending != "xlsx":
        assert browser.get(address).content == file.content


def test_a_value_that_fits_no_cell_is_not_cut_off(tmp_path: Path) -> None:
    field = make_field(make_topup_product())
    TopUpField.objects.filter(pk=field.pk).update(label="x" * 100)
    for number in range(1, 400):
        field.options.create(value=f"{number}-{'v' * 50}", label="l" * 50, position=number)
    assert "too long for a cell" in refusal("export_catalogue", tmp_path / "catalogue.xlsx")
    assert not AuditEntry.objects.filter(action=AuditAction.EXPORTED).exists()
    browser = signed_in(make_staff(superuser=True))
    address = reverse("admin:imports_fileimport_export", args=["xlsx"])
    assert "too long for a cell" in browser.get(address, follow=True).text
    run("export_catalogue", tmp_path / "catalogue.csv")


def test_only_people_who_import_export() -> None:
    address = reverse("admin:imports_fileimport_export", args=["csv"])
    assert signed_in(make_staff("catalogue.view_product")).get(address).status_code == 403
    assert signed_in(make_staff("imports.import_catalogue")).get(address).status_code == 200
    unknown = reverse("admin:imports_fileimport_export", args=["xml"])
    assert signed_in(make_staff("imports.import_catalogue")).get(unknown).status_code == 404


def table(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def test_a_table_changes_only_its_columns() -> None:
    product = make_product(price="5.00")
    variation = make_variation(product, price="6.00")
    staff = make_staff(superuser=True)
    content = table(
        "ID;Kind;Price;Product;currency;name",
        f"{product.pk};product;7.50;;USD;{product.name}",
        f"{variation.pk};variation;;{product.pk};;{variation.name}",
        ";;;;;",
    )
    row = now(confirmed(staff, content, None), run=True)
    assert row.state == ImportState.IMPORTED
    assert own_shelf(product).price == Decimal("7.50")
    assert Shelf.objects.get(variation=variation).price is None
    product.refresh_from_db()
    assert product.active


def test_a_workbook_has_the_same_columns(tmp_path: Path) -> None:
    product = make_product(price="5.00")
    book = Workbook()
    sheet: Any = book.active
    sheet.append(["kind", "id", "name", "currency", "price", "active"])
    sheet.append(["product", product.pk, "007", "USD", 7.25, False])
    book.save(tmp_path / "catalogue.xlsx")
    assert run("import_catalogue", tmp_path / "catalogue.xlsx")["products"]["updated"] == 1
    product.refresh_from_db()
    assert (product.name, product.active, own_shelf(product).price) == (
        "007",
        False,
        Decimal("7.25"),
    )


WITHOUT_VALUES = [
    f"line 2, {name}: This field is required." for name in ("name", "currency", "price")
]


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        (["kind,name", "product,x"], ["The first line names the columns"]),
        (["kind,id,colour", "product,1,red"], ["The first line names the columns"]),
        (["kind,id", "thing,1"], ["line 2: the kind is not one of"]),
        (
            ["kind,id,price", "category,1,5"],
            ["line 2, price: a category has none", "line 2, name: This field is required."],
        ),
        (
            ["kind,id,product", "variation,1,2"],
            ["line 2, product: the file has no product", "line 2, name: This field is required."],
        ),
        (
            ["kind,id,fields", "topup_product,1,x"],
            ["line 2, fields: this is not JSON", *WITHOUT_VALUES],
        ),
        (
            ["kind,id,fields", "topup_product,1," + "[" * 50_000],
            ["line 2, fields: this is not JSON", *WITHOUT_VALUES],
        ),
        (
            ["kind,id,name,currency,price", "product,1,x,USD,9", "product,1,y,USD,cheap"],
            [f"line 3, price: {NOT_PLAIN % {'text': 'cheap'}}", "line 3, id: repeats line 2, id"],
        ),
        (
            ["kind,id,name,currency", "product,1,x,USD", "category,7,c,", "product,1,y,USD"],
            ["line 4, id: repeats line 2, id"],
        ),
        (
            ["kind,id,name,currency,category,product", "product,1,x,USD,77,", "variation,v,z,,,1"],
            ["line 3, id: A valid integer is required.", "line 2, category: there is no category"],
        ),
    ],
)
def test_problems_of_a_table_name_lines(lines: list[str], problems: list[str]) -> None:
    staff: User = make_staff(superuser=True)
    row = upload(staff, table(*lines), None)
    assert row.state == ImportState.REFUSED
    assert len(row.problems) == len(problems)
    for found, expected in zip(row.problems, problems, strict=True):
        assert found.startswith(expected)


def test_another_ending_is_refused(tmp_path: Path) -> None:
    assert "must end with" in refusal("export_catalogue", tmp_path / "catalogue.ods")
