"""A catalogue file that staff check and import in the browser, and odd uploads."""

from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.urls import reverse

from audit.models import AuditAction, AuditEntry
from catalogue.models import Product, Shelf
from operators.imports import catalogue_file, jobs
from operators.imports.catalogue_changes import find_changes
from operators.imports.models import FileImport, ImportKind, ImportState
from tests.factories import make_product, own_shelf
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db

CODES = b"code\nSECRET-1\n"


@pytest.fixture
def staff() -> User:
    return make_staff(superuser=True)


def checked(staff: User, content: bytes) -> FileImport:
    """An import of this catalogue file, after its check."""
    row = jobs.upload_file(
        kind=ImportKind.CATALOGUE,
        content=content,
        file_name="new.json",
        shelf=None,
        actor=staff,
        token=uuid4(),
    )
    return after_a_worker(row)


def after_a_worker(row: FileImport) -> FileImport:
    jobs.run_import(pk=row.pk)
    return FileImport.objects.get(pk=row.pk)


def catalogue(**product: Any) -> bytes:
    row = {"id": 900_001, "name": "Game card", "currency": "USD", "price": "10", **product}
    return orjson.dumps({"products": [row]})


def last_product_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT last_value FROM catalogue_product_id_seq")
        (last,) = cursor.fetchone()
    return int(last)


def test_a_check_leaves_the_ids_of_new_products_alone(staff: User) -> None:
    before = last_product_id()

    row = checked(staff, catalogue(id=before + 500))

    assert row.state == ImportState.READY
    assert last_product_id() == before
    assert jobs.confirm_import(pk=row.pk, actor=staff, seen=row.version)
    assert after_a_worker(row).state == ImportState.IMPORTED
    assert Product.objects.filter(pk=before + 500).exists()
    assert last_product_id() == before + 500


def test_a_form_without_its_id_uploads(staff: User) -> None:
    shelf = own_shelf(make_product())
    file = SimpleUploadedFile("new.csv", CODES)

    answer = signed_in(staff).post(
        reverse("admin:imports_fileimport_upload", args=["codes"]),
        {"file": file, "shelf": shelf.pk},
    )

    assert answer.status_code == 302
    assert FileImport.objects.get().content() == CODES


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (catalogue(type="\0ab"), 'products[0].type: "\\x00ab" is not a valid choice.'),
        (
            catalogue(type="X").replace(b'"X"', b'"\\ud800"'),
            'products[0].type: "\\ud800" is not a valid choice.',
        ),
        (
            catalogue(price=1).replace(b'"price":1', b'"price":1e999999999999999999999'),
            "Cannot read the file or a number in it.",
        ),
    ],
    ids=["NUL", "surrogate", "exponent"],
)
def test_values_that_cannot_be_stored_are_named(content: bytes, problem: str, staff: User) -> None:
    row = checked(staff, content)

    assert (row.state, row.problems) == (ImportState.REFUSED, [problem])


@pytest.mark.parametrize("other", ["content", "shelf", "actor"])
def test_another_file_in_the_same_form_is_another_import(other: str, staff: User) -> None:
    token = uuid4()
    sent: dict[str, Any] = {"content": CODES, "shelf": own_shelf(make_product()), "actor": staff}
    changed = {
        "content": CODES + b"SECRET-2\n",
        "shelf": own_shelf(make_product()),
        "actor": make_staff(),
    }

    rows = [
        jobs.upload_file(kind=ImportKind.CODES, file_name="a.csv", token=token, **values)
        for values in (sent, sent, {**sent, other: changed[other]})
    ]

    assert rows[0] == rows[1] != rows[2]
    assert rows[2].content() == (changed if other == "content" else sent)["content"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("slow", ["one statement", "many statements"])
def test_a_check_that_keeps_purchases_waiting_ends(
    slow: str, staff: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(price="10")
    monkeypatch.setattr(catalogue_file, "CHECK_SECONDS", 0.3 if slow == "one statement" else 0)

    def find_slowly(actor: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [2 if slow == "one statement" else 0])
        return find_changes(actor)

    monkeypatch.setattr(catalogue_file, "find_changes", find_slowly)

    row = checked(staff, catalogue(id=product.pk, price="5"))

    assert (row.state, row.problems) == (ImportState.REFUSED, [catalogue_file.TOO_SLOW])
    assert own_shelf(product).price == 10


def test_the_entry_of_each_imported_change_names_who_confirmed(staff: User) -> None:
    product = make_product(price="10")
    row = checked(staff, catalogue(id=product.pk, name="Another name"))

    assert jobs.confirm_import(pk=row.pk, actor=staff, seen=row.version)
    after_a_worker(row)

    entry = AuditEntry.objects.get(
        action=AuditAction.CHANGED, object_type="catalogue.product", object_id=product.pk
    )
    assert (entry.actor, entry.changes["name"][1]) == (staff, "Another name")


def test_prices_that_differ_from_the_check_are_confirmed_again(staff: User) -> None:
    product = make_product(price="10")
    row = checked(staff, catalogue(id=product.pk, price="5"))
    Shelf.objects.filter(product=product).update(price="8")

    assert jobs.confirm_import(pk=row.pk, actor=staff, seen=row.version)
    row = after_a_worker(row)

    assert (row.state, row.confirmed_by) == (ImportState.READY, None)
    assert own_shelf(product).price == 8
    assert row.result["prices"][0]["before"] == "8.0000"
    page = signed_in(staff).get(url(row)).content.decode()
    assert "Prices have changed since" in page

    assert jobs.confirm_import(pk=row.pk, actor=staff, seen=row.version)
    row = after_a_worker(row)

    assert row.state == ImportState.IMPORTED
    assert own_shelf(product).price == 5
    assert "Prices have changed since" not in signed_in(staff).get(url(row)).content.decode()
