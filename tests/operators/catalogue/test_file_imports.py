"""Staff import codes and the catalogue in the browser: a check first, then all or nothing, once."""

import html
import re
from datetime import timedelta
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from catalogue.imports.code_import import add_codes
from catalogue.imports.take_back import take_import_back
from catalogue.models import Batch, PriceList, Product, Shelf, ShelfPriceChange, VoucherCode
from catalogue.stock.codes import Code
from core.backoffice.staff_roles import StaffRole
from core.files.doubts import doubt_id
from core.files.tables import NOT_UTF_8, PIECE
from core.numbers import NOT_PLAIN
from figures.models import ExchangeRate
from operators.imports import catalogue_file, jobs, tasks
from operators.imports.models import FileImport, FilePart, ImportKind, ImportState
from operators.imports.pages import upload_url
from tests import spreadsheets
from tests.concurrency.racing import holding_locks, race
from tests.factories import (
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.neighbour import ours
from tests.operators.back_office import list_url, make_staff, signed_in, text_of, url

pytestmark = pytest.mark.django_db

CODES = b"code,pin_code\nSECRET-1,0012\nSECRET-2,\n"


@pytest.fixture
def staff() -> User:
    return make_staff(superuser=True)


@pytest.fixture
def shelf() -> Shelf:
    return own_shelf(make_product())


def upload(staff: User, content: bytes, shelf: Shelf | None) -> FileImport:
    """An import of this file, checked."""
    kind = ImportKind.CODES if shelf else ImportKind.CATALOGUE
    row = jobs.upload_file(
        kind=kind, content=content, file_name="new.csv", shelf=shelf, actor=staff, token=uuid4()
    )
    return now(row, run=True)


def now(row: FileImport, *, run: bool = False) -> FileImport:
    if run:
        jobs.run_import(pk=row.pk)
    return FileImport.objects.get(pk=row.pk)


def confirm(row: FileImport, staff: User) -> bool:
    return jobs.confirm_import(pk=row.pk, actor=staff, seen=now(row).version)


def confirmed(staff: User, content: bytes, shelf: Shelf | None) -> FileImport:
    row = upload(staff, content, shelf)
    assert confirm(row, staff)
    return now(row)


def catalogue(**product: Any) -> bytes:
    row = {"id": 900_001, "name": "Game card", "currency": "USD", "price": "10", **product}
    return orjson.dumps({"products": [row]})


# --- Codes ---------------------------------------------------------------------------------------


def test_a_check_imports_nothing_and_an_import_everything(staff: User, shelf: Shelf) -> None:
    row = upload(staff, CODES, shelf)
    assert (row.state, row.problems) == (ImportState.READY, [])
    assert row.result == {
        "sheet": "",
        "codes": 2,
        "sample": ["code: AAAAAA-9, pin_code: 9999", "code: AAAAAA-9"],
        "last": [],
        "shapes": {"lengths": {"8": 2}, "alphabets": {"capital": 2, "digit": 2, "sign": 2}},
        "doubts": [],
    }
    assert not ours(VoucherCode).exists()

    assert confirm(row, staff)
    row = now(row, run=True)

    batch = Batch.objects.get()
    assert (row.state, row.result) == (ImportState.IMPORTED, {"codes": 2, "batch": batch.pk})
    assert (batch.number, batch.imported_by) == (2, f"admin:{staff.username}")
    shelf.refresh_from_db()
    assert shelf.available_stock == ours(VoucherCode).filter(shelf=shelf).count() == 2
    entry = AuditEntry.objects.get(action=AuditAction.CODES_IMPORTED)
    assert (entry.actor, entry.object_id, entry.note) == (staff, str(shelf.pk), "Codes: 2")


def test_the_page_says_that_the_import_was_taken_back(staff: User, shelf: Shelf) -> None:
    row = now(confirmed(staff, CODES, shelf), run=True)
    words, browser = "This import was taken back later", signed_in(staff)
    assert words not in text_of(browser.get(url(row)))

    take_import_back(batch_id=row.result["batch"], reason="wrong file", held_by="test", actor=staff)

    assert words in text_of(browser.get(url(row)))


@pytest.mark.parametrize(
    ("content", "problems", "more"),
    [
        (b"code,pin_code\nA,1\nB\n,3\n", ["line 3: 1 column instead of 2", "line 4: the code"], 0),
        (
            b"code\nNEW\nSTORED\nNEW\n",
            ["the code of line 3 is already in stock", "line 4 repeats line 2"],
            0,
        ),
        (
            b"code;pin_code\nNEW;1\nSTORED;2\nNEW;3\nbroken\n",
            [
                "the code of line 3 is already in stock, of ",
                "line 4 repeats line 2",
                "line 5: 1 column",
            ],
            0,
        ),
        (
            b"code\n" + b"A\n" * 10_040,
            [f"line {line} repeats line 2" for line in range(3, 10_003)],
            39,
        ),
        (
            b"code\n" + b"\xff\n" * 10_001,
            [f"line {line}: {NOT_UTF_8}" for line in range(2, 10_002)],
            1,
        ),
        (b"code\n", ["The file contains no codes."], 0),
        (b"codes\nA\n", ["The first line names the columns. The name of column A"], 0),
    ],
)
def test_problems_are_named_by_line(
    content: bytes, problems: list[str], more: int, staff: User, shelf: Shelf
) -> None:
    add_codes(shelf=shelf, rows=[(2, Code("STORED"))])

    row = upload(staff, content, shelf)

    assert row.state == ImportState.REFUSED
    assert len(row.problems) == len(problems)
    for found, expected in zip(row.problems, problems, strict=True):
        assert found.startswith(expected)
    assert row.more_problems == more
    assert row.sealed is None
    assert ours(VoucherCode).count() == 1


def test_a_code_that_came_in_meanwhile_is_named(staff: User, shelf: Shelf) -> None:
    first, second = (confirmed(staff, CODES, shelf) for _ in range(2))

    assert now(first, run=True).state == ImportState.IMPORTED
    second = now(second, run=True)

    assert second.state == ImportState.REFUSED
    assert second.problems[0] == f"the code of line 2 is already in stock, of {shelf}"
    assert ours(VoucherCode).count() == 2


def test_a_repeated_message_imports_once(staff: User, shelf: Shelf) -> None:
    row = confirmed(staff, CODES, shelf)

    for _ in range(3):
        jobs.run_import(pk=row.pk)

    assert now(row).state == ImportState.IMPORTED
    assert ours(VoucherCode).count() == 2
    assert AuditEntry.objects.filter(action=AuditAction.CODES_IMPORTED).count() == 1


def test_a_form_that_is_sent_twice_uploads_once(staff: User, shelf: Shelf) -> None:
    sent = {"kind": ImportKind.CODES, "content": CODES, "file_name": "a", "shelf": shelf}
    token = uuid4()

    rows = [jobs.upload_file(**sent, actor=staff, token=token) for _ in range(2)]  # type: ignore[arg-type]

    assert rows[0] == rows[1]
    assert FileImport.objects.count() == 1


# --- Secrets -------------------------------------------------------------------------------------


def test_the_file_is_stored_sealed_and_deleted_at_the_end(staff: User, shelf: Shelf) -> None:
    row = confirmed(staff, CODES, shelf)
    assert row.content() == CODES
    with connection.cursor() as cursor:
        cursor.execute("SELECT row::text FROM imports_fileimport AS row")
        (stored,) = cursor.fetchone()
    assert b"SECRET".hex() not in stored

    assert now(row, run=True).sealed is None


@pytest.mark.parametrize("end", ["refused", "discarded", "old"])
def test_no_end_keeps_the_file(end: str, staff: User, shelf: Shelf) -> None:
    row = upload(staff, b"code\n\n" if end == "refused" else CODES, shelf)
    if end == "discarded":
        assert jobs.discard_import(pk=row.pk, actor=staff)
    if end == "old":
        FileImport.objects.update(touched_at=timezone.now() - timedelta(days=1, minutes=1))
        assert jobs.sweep_imports()["discarded"] == 1

    row = now(row)
    assert row.sealed is None
    assert row.finished_at is not None
    assert not ours(VoucherCode).exists()


def test_messages_and_pages_show_no_code(staff: User, shelf: Shelf) -> None:
    row = upload(staff, b"code\nSECRET-1\nSECRET-1\nSECRET-1,x\n", shelf)

    page = signed_in(staff).get(url(row)).content.decode()

    assert "line 4: 2 columns instead of 1" in page
    assert "SECRET" not in page + str(row.problems)


def test_a_file_that_cannot_be_opened_is_refused(staff: User, shelf: Shelf) -> None:
    row, other = (
        jobs.upload_file(
            kind=ImportKind.CODES,
            content=CODES,
            file_name="a.csv",
            shelf=shelf,
            actor=staff,
            token=uuid4(),
        )
        for _ in range(2)
    )
    FileImport.objects.filter(pk=row.pk).update(sealed=other.sealed)

    row = now(row, run=True)

    assert (row.state, row.problems) == (ImportState.REFUSED, [jobs.LOST_FILE])


@pytest.mark.parametrize(
    "change",
    [
        "kind = 'other'",
        "state = 'other'",
        "shelf_id = NULL",
        "kind = 'catalogue'",
        "sealed = NULL",
        "finished_at = now()",
        "state = 'refused'",
        "state = 'discarded', sealed = NULL",
        "state = 'importing'",
        "state = 'imported', sealed = NULL, finished_at = now()",
        "token = (SELECT token FROM imports_fileimport ORDER BY id LIMIT 1)",
    ],
)
def test_the_database_refuses_a_state_that_cannot_be(
    change: str, staff: User, shelf: Shelf
) -> None:
    upload(staff, CODES, shelf)
    row = upload(staff, CODES, shelf)

    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(f"UPDATE imports_fileimport SET {change} WHERE id = {row.pk}")


# --- Large files, in parts -----------------------------------------------------------------------

LARGE = b"code\n" + b"".join(b"LARGE-%0400d\n" % number for number in range(3000))


def send_part(browser: Client, upload: UUID, number: int, content: bytes) -> int:
    file = BytesIO(content)
    file.name = "part"
    sent = {"upload": upload, "number": number, "file": file}
    return browser.post(reverse("admin:imports_fileimport_part"), sent).status_code


def send_parts(browser: Client, upload: UUID, content: bytes) -> None:
    for number, start in enumerate(range(0, len(content), jobs.PART_BYTES)):
        part = content[start : start + jobs.PART_BYTES]
        assert send_part(browser, upload, number, part) == 204


def finish(browser: Client, upload: UUID, content: bytes, shelf: Shelf) -> Any:
    address = reverse("admin:imports_fileimport_upload", args=["codes"])
    about = {"upload": upload, "upload_name": "large.csv", "upload_size": len(content)}
    return browser.post(address, {"form": uuid4(), "shelf": shelf.pk, **about}, follow=True)


@pytest.mark.django_db(transaction=True)
def test_a_file_that_comes_in_parts_is_imported(staff: User, shelf: Shelf) -> None:
    browser, upload = signed_in(staff), uuid4()
    send_parts(browser, upload, LARGE)
    send_part(browser, upload, 0, LARGE[: jobs.PART_BYTES])  # its response was lost
    for _ in range(2):
        assert "Checking the file" in finish(browser, upload, LARGE, shelf).content.decode()
    row = FileImport.objects.get()
    assert (row.file_name, row.size, row.content() == LARGE) == ("large.csv", len(LARGE), True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(part::text, ' ') FROM imports_filepart AS part")
        assert b"LARGE-0".hex() not in cursor.fetchone()[0]

    row = now(row, run=True)
    assert (row.state, row.result["codes"]) == (ImportState.READY, 3000)
    assert confirm(row, staff)
    assert now(row, run=True).state == ImportState.IMPORTED

    assert ours(VoucherCode).filter(shelf=shelf).count() == 3000
    assert not FilePart.objects.exists()


def test_the_end_of_an_import_deletes_its_parts_and_no_others(staff: User, shelf: Shelf) -> None:
    uploads = [uuid4(), uuid4()]
    for upload in uploads:
        jobs.add_part(upload=upload, number=0, content=b"code\nA\n", actor=staff)
    row = jobs.finish_upload(
        upload=uploads[0], size=7, file_name="codes.csv", shelf=shelf, actor=staff
    )
    FileImport.objects.update(finished_at=None)
    assert FilePart.objects.count() == 2
    now(row, run=True)
    assert jobs.discard_import(pk=row.pk, actor=staff)
    assert [part.upload for part in FilePart.objects.all()] == uploads[1:]

    FilePart.objects.update(upload=uploads[0])
    FileImport.objects.update(finished_at=timezone.now())
    assert FilePart.objects.count() == 1, "only the end of an import deletes"


def test_an_upload_without_all_parts_is_refused(staff: User, shelf: Shelf) -> None:
    browser, upload = signed_in(staff), uuid4()
    send_part(browser, upload, 0, LARGE[: jobs.PART_BYTES])

    page = finish(browser, upload, LARGE, shelf).content.decode()

    assert "The upload is not complete. Choose the file again." in page
    assert not FileImport.objects.exists()


def test_parts_of_another_person_are_not_used(staff: User, shelf: Shelf) -> None:
    upload = uuid4()
    send_parts(signed_in(staff), upload, LARGE)

    page = finish(signed_in(make_staff(superuser=True)), upload, LARGE, shelf).content.decode()

    assert "The upload is not complete" in page
    assert not FileImport.objects.exists()


@pytest.mark.parametrize("change", ["DELETE", "add a part"])
def test_a_file_whose_parts_changed_is_refused(change: str, staff: User, shelf: Shelf) -> None:
    browser, upload = signed_in(staff), uuid4()
    send_parts(browser, upload, LARGE)
    finish(browser, upload, LARGE, shelf)
    if change == "DELETE":
        FilePart.objects.filter(number=1).delete()
    else:
        assert send_part(browser, upload, 2, b"ANOTHER\n") == 204

    row = now(FileImport.objects.get(), run=True)

    assert (row.state, row.problems) == (ImportState.REFUSED, [jobs.LOST_FILE])
    assert not FilePart.objects.exists()


@pytest.mark.parametrize(
    ("number", "content"), [(64, b"A"), (-1, b"A"), (0, b""), (0, b"A" * (jobs.PART_BYTES + 1))]
)
def test_a_part_beyond_the_limits_is_refused(number: int, content: bytes, staff: User) -> None:
    assert send_part(signed_in(staff), uuid4(), number, content) == 400
    assert not FilePart.objects.exists()


def test_only_people_who_import_codes_upload_parts(shelf: Shelf) -> None:
    assert send_part(signed_in(make_staff()), uuid4(), 0, b"A") == 403


def test_an_abandoned_upload_is_deleted_after_a_day(staff: User) -> None:
    send_part(signed_in(staff), uuid4(), 0, b"A")
    jobs.sweep_imports()
    assert FilePart.objects.count() == 1

    FilePart.objects.update(created_at=timezone.now() - timedelta(days=1, minutes=1))
    jobs.sweep_imports()
    assert not FilePart.objects.exists()


# --- Work that breaks off ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_lost_work_is_tried_again_then_stopped_then_retried(
    staff: User, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    queued: list[int] = []
    monkeypatch.setattr(jobs, "_queue", queued.append)
    monkeypatch.setattr(jobs, "_import", broken)
    row = confirmed(staff, CODES, shelf)
    queued.clear()
    for _ in range(jobs.ATTEMPTS):
        with pytest.raises(ZeroDivisionError):
            jobs.run_import(pk=row.pk)
        assert jobs.sweep_imports()["again"] == 0  # it may still run
        FileImport.objects.update(touched_at=timezone.now() - timedelta(minutes=2))
        if len(queued) + 1 < jobs.ATTEMPTS:
            assert jobs.sweep_imports() == {"stopped": 0, "again": 1, "discarded": 0}
    assert queued == [row.pk] * (jobs.ATTEMPTS - 1)

    assert jobs.sweep_imports() == {"stopped": 1, "again": 0, "discarded": 0}
    assert now(row).state == ImportState.STOPPED
    assert not ours(VoucherCode).exists()

    monkeypatch.undo()
    assert jobs.retry_import(pk=row.pk, actor=staff)
    assert now(row, run=True).state == ImportState.READY
    assert confirm(row, staff)
    assert now(row, run=True).state == ImportState.IMPORTED


def test_the_task_may_take_as_long_as_a_million_codes_need() -> None:
    assert tasks.run_import.acks_late is False
    assert (tasks.run_import.soft_time_limit or 0) > settings.CELERY_TASK_SOFT_TIME_LIMIT


def test_codes_and_their_new_state_are_one_transaction(
    staff: User, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = confirmed(staff, CODES, shelf)
    monkeypatch.setattr(jobs, "_end", lambda row, state, **values: broken(row, None))
    with pytest.raises(ZeroDivisionError):
        jobs.run_import(pk=row.pk)
    assert not ours(VoucherCode).exists()

    monkeypatch.undo()
    assert now(row, run=True).state == ImportState.IMPORTED
    assert ours(VoucherCode).count() == 2


def broken(row: FileImport, beside: object) -> None:
    raise ZeroDivisionError


def in_pieces(form: str) -> bytes:
    """A file of codes that is read in two pieces or more."""
    lines = ["code", *(f"SECRET-{number}" for number in range(PIECE // 10))]
    if form == "csv":
        content = "\n".join(lines).encode()
    else:
        sheet = spreadsheets.sheet(spreadsheets.rows(*([one] for one in lines)))
        content = spreadsheets.workbook(sheet)
    return content


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", ["csv", "xlsx"])
@pytest.mark.parametrize("state", [ImportState.CHECKING, ImportState.IMPORTING])
def test_a_person_stops_what_runs(
    state: ImportState, form: str, staff: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker notices after the next piece of the file."""
    shelf, calls = own_shelf(make_product()), 0
    row = upload(staff, in_pieces(form), shelf)
    if state == ImportState.IMPORTING:
        assert confirm(row, staff)
    else:
        FileImport.objects.update(state=ImportState.CHECKING)
    report = jobs._report_progress

    def stopped_on_its_page() -> None:
        page = signed_in(staff).post(step(row, "stop"), follow=True)
        assert f"Stopped by {staff.username}." in text_of(page)

    def report_and_stop(*arguments: Any) -> Any:
        advance = report(*arguments)

        def and_stop(size: int) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                race([stopped_on_its_page])
            advance(size)

        return and_stop

    monkeypatch.setattr(jobs, "REPORT_SECONDS", 0)
    monkeypatch.setattr(jobs, "_report_progress", report_and_stop)
    row = now(row, run=True)

    assert calls == 1
    assert row.state == ImportState.STOPPED
    assert not VoucherCode.objects.filter(shelf=shelf).exists()
    entry = AuditEntry.objects.filter(object_id=str(row.pk)).latest("pk")
    assert (entry.actor, entry.changes["state"]) == (staff, [state, ImportState.STOPPED])
    assert not jobs.stop_import(pk=row.pk, actor=staff)

    monkeypatch.undo()
    assert jobs.retry_import(pk=row.pk, actor=staff)
    assert now(row, run=True).state == ImportState.READY


@pytest.mark.django_db(transaction=True)
def test_a_message_about_a_file_at_work_is_not_an_attempt(
    staff: User, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = upload(staff, CODES, shelf)
    FileImport.objects.update(state=ImportState.CHECKING, attempts=1)
    with holding_locks("SELECT pg_advisory_lock(hashtext(%s), %s)", jobs.LOCK_NAME, row.pk):
        row = now(row, run=True)
        assert jobs.sweep_imports()["again"] == 0
    assert (row.state, row.attempts) == (ImportState.CHECKING, 1)
    assert now(row, run=True).state == ImportState.READY


# --- Catalogue -----------------------------------------------------------------------------------


def test_a_catalogue_shows_what_would_change(staff: User) -> None:
    product = make_product(price="10")
    make_topup_product(price="4")
    jobs_before = ShelfPriceChange.objects.count()
    file = catalogue(id=product.pk, name=product.name, price="5")

    row = upload(staff, file, None)

    assert row.state == ImportState.READY
    assert row.result["counts"]["products"] == {"created": 0, "updated": 1, "unchanged": 0}
    (price,) = row.result["prices"]
    assert price == {
        "name": product.name,
        "currency": "USD",
        "before": "10.0000",
        "after": "5.0000",
        "percent": -50.0,
    }
    assert own_shelf(product).price == 10
    assert ShelfPriceChange.objects.count() == jobs_before
    page = signed_in(staff).get(url(row)).content.decode()
    assert "10.00 USD" in page
    assert "-50.0 %" in page

    assert confirm(row, staff)
    assert now(row, run=True).state == ImportState.IMPORTED
    assert own_shelf(product).price == 5
    assert ShelfPriceChange.objects.latest("pk").changed_by == f"admin:{staff.get_username()}"
    assert AuditEntry.objects.get(action=AuditAction.PRODUCTS_IMPORTED).actor == staff


def test_prices_that_moved_after_the_confirmation_are_confirmed_again(staff: User) -> None:
    product = make_product(price="10")
    row = confirmed(staff, catalogue(id=product.pk, name=product.name, price="5"), None)
    Shelf.objects.filter(product=product).update(price="8")

    asked = now(row, run=True)

    assert asked.state == ImportState.READY
    assert asked.result["prices"][0]["before"] == "8.0000"
    assert own_shelf(product).price == 8
    assert confirm(row, staff)
    assert now(row, run=True).state == ImportState.IMPORTED
    assert own_shelf(product).price == 5


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"products": [{"id": 1}]}', "products[0].name: This field is required."),
        (b"{", "new.csv is not JSON"),
        (b"\xff", f"line 1: {NOT_UTF_8}"),
        (catalogue(price="-1"), "products[0].price: "),
        (catalogue(category=900_009), "products[0].category: there is no category 900009"),
    ],
)
def test_problems_of_a_catalogue_are_named_by_place(
    content: bytes, problem: str, staff: User
) -> None:
    row = upload(staff, content, None)

    assert row.state == ImportState.REFUSED
    assert any(one.startswith(problem) for one in row.problems), row.problems
    assert not Product.objects.filter(pk=900_001).exists()


def test_all_problems_of_a_catalogue_are_kept(staff: User) -> None:
    row = upload(staff, orjson.dumps({"categories": [7] * 10_001}), None)

    assert row.problems == [f"categories[{place}]: Must be an object." for place in range(10_000)]
    assert row.more_problems == 1


def test_one_upload_reports_the_mistakes_of_all_checks(staff: User) -> None:
    sold = make_product(codes=1)
    make_merchant().buy(product_id=sold.pk, quantity=1)
    topup = {"id": 900_001, "name": "Gems", "currency": "USD", "price": "1"}
    field = {"id": 1, "name": "a", "label": "A", "type": "text"}
    content = {
        "categories": [7, {"id": 900_001, "name": ""}, {"id": 900_001, "name": "C"}],
        "products": [
            {"id": 900_001, "name": "P", "currency": "usd", "colour": "red", "category": 900_009},
            {"id": 900_001, "name": "P", "currency": "USD", "price": "x", "category": 900_001},
            {"id": sold.pk, "name": "P", "currency": "EUR", "price": "x", "variations": [[1], 2]},
        ],
        "topup_products": [
            {**topup, "price": "x", "category": 900_009, "fields": [field, field, None]},
            {**topup, "category": 900_001, "fields": [7, {**field, "options": 7}, "x"]},
        ],
    }

    row = upload(staff, orjson.dumps(content), None)

    places = [one.partition(": ")[0] for one in row.problems]
    assert places == [
        *("categories[0]", "categories[1].name"),
        *("products[0].colour", "products[0].currency", "products[1].price", "products[2].price"),
        *("products[2].variations[0]", "products[2].variations[1]"),
        *("topup_products[0].price", "topup_products[0].fields[2]"),
        *("topup_products[1].fields[0]", "topup_products[1].fields[1].options"),
        "topup_products[1].fields[2]",
        *("categories[2].id", "products[1].id", "products[0].category", "products[2].currency"),
        *("topup_products[1].id", "topup_products[0].category"),
        *("topup_products[0].fields[1].id", "topup_products[0].fields[1].name"),
    ]


def test_one_upload_reports_the_mistakes_of_all_lines_of_a_table(staff: User) -> None:
    lines = [
        b"kind,id,name,currency,price,product,category",
        b"product,900001,P,USD,1,,",
        b"thing,1,x,,,,",
        b"product,900002,\xff,USD,1,,",
        b'product,900003,"P,USD,1,,',
        b"product,900001,P,USD,cheap,,900009",
        b'product,900004,"P"x,USD,1,,',
        b"variation,900001,V,,cheap,900009,",
        b"category,900001,,,1,,",
        b"product,900001,P,USD,1,,",
    ]

    row = upload(staff, b"\r\n".join(lines), None)

    assert [one.removesuffix(".") for one in row.problems] == [
        "line 3: the kind is not one of category, product, variation, topup_product",
        f"line 4: {NOT_UTF_8}",
        "line 5: a quotation mark in this line or above it is not closed",
        f"line 6, price: {NOT_PLAIN % {'text': 'cheap'}}",
        "line 7: a quotation mark inside a value must be written twice",
        f"line 8, price: {NOT_PLAIN % {'text': 'cheap'}}",
        "line 9, price: a category has none",
        "line 8, product: the file has no product with this id",
        "line 9, name: This field is required",
        "line 6, id: repeats line 2, id",
        "line 10, id: repeats line 2, id",
        "line 6, category: there is no category 900009",
    ]


def test_a_table_with_too_many_mistakes_is_not_read_to_its_end(staff: User) -> None:
    row = upload(staff, b"kind,id\n" + b"thing,1\n" * 10_005, None)

    assert len(row.problems) == 10_000
    assert row.problems[-2].startswith("line 10000: the kind is not one of")
    assert row.problems[-1] == (
        "line 10002: there are too many problems, and the file was not read from here on"
    )


@pytest.mark.parametrize("header", [b'kind,id,"name', b'"kind"x,id', b"kind,\xff"])
def test_a_table_whose_first_line_is_wrong_has_one_problem(header: bytes, staff: User) -> None:
    row = upload(staff, header + b"\nkind,id\nthing,1\n", None)

    assert row.state == ImportState.REFUSED
    assert len(row.problems) == 1


def test_a_slow_check_names_the_mistakes_too(staff: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_file, "CHECK_SECONDS", 0)

    row = upload(staff, catalogue(price="x"), None)

    assert row.problems == [
        "products[0].price: A valid number is required.",
        catalogue_file.TOO_SLOW,
    ]


def test_a_check_reads_a_limited_number_of_rows(staff: User) -> None:
    content = catalogue(variations=[7] * catalogue_file.MAX_ROWS)

    row = upload(staff, content, None)

    assert row.problems[0].startswith("The file has more than 50,000 rows.")


# --- Pages ---------------------------------------------------------------------------------------


def send(browser: Client, kind: str, content: bytes, **fields: Any) -> Any:
    file = BytesIO(content)
    file.name = "from-the-browser.csv"
    address = reverse("admin:imports_fileimport_upload", args=[kind])
    return browser.post(address, {"file": file, "form": str(uuid4()), **fields}, follow=True)


def step(row: FileImport, name: str) -> str:
    return reverse("admin:imports_fileimport_step", args=[row.pk, name])


def test_the_pages_lead_from_the_upload_to_the_result(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    page = send(browser, "codes", CODES, shelf=shelf.pk).content.decode()
    row = FileImport.objects.get()
    assert (row.file_name, row.created_by) == ("from-the-browser.csv", staff)
    form = browser.get(reverse("admin:imports_fileimport_upload", args=["codes"])).text
    assert form.count("js/autocomplete") == 1  # run twice, it would draw a second box
    assert "Checking the file" in page
    live = reverse("admin:imports_fileimport_progress", args=[row.pk])
    assert f'data-live="{live}"' in page
    assert "data-ended" not in browser.get(live).content.decode()

    jobs.run_import(pk=row.pk)
    ready = browser.get(live).content.decode()
    assert "data-ended" in ready
    assert "Import 2 codes" in ready

    importing = browser.post(
        step(row, "confirm"), {"seen": now(row).version}, follow=True
    ).content.decode()
    assert "Importing." in importing
    jobs.run_import(pk=row.pk)
    assert "2 codes were added to" in browser.get(url(row)).content.decode()
    assert (
        browser.post(step(row, "discard"), follow=True).content.decode().count("already continued")
        == 1
    )


def test_a_page_has_no_empty_lines_about_the_end(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    row = upload(staff, CODES, shelf)
    before = browser.get(url(row)).text
    assert "Uploaded by" in before
    assert "Confirmed by" not in before
    assert "Finished at" not in before

    assert confirm(row, staff)
    now(row, run=True)
    after = browser.get(url(row)).text
    assert "Confirmed by" in after
    assert url(staff) not in after
    assert "Finished at" in after


def test_a_wrong_form_asks_to_choose_the_file_again(staff: User, shelf: Shelf) -> None:
    page = send(signed_in(staff), "codes", CODES, shelf=shelf.pk, unit_cost="9.12").text
    assert "A unit cost needs a currency" in page
    assert "Choose the file again" in page
    assert not FileImport.objects.exists()


def test_numbers_that_a_spreadsheet_changed_are_confirmed_first(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    row = upload(staff, b"code\n1.23457E+15\n", shelf)
    ready = browser.get(url(row)).content.decode()
    assert "has 1 rounded number like 1.23457E+15, the first in line 2" in ready
    assert "No problems" not in ready
    assert "I checked this: the file is right." in ready
    assert ready.index("The file is in doubt.") < ready.index("Nothing has been imported yet")

    asked = browser.post(
        step(row, "confirm"), {"seen": now(row).version}, follow=True
    ).content.decode()
    assert "confirm each doubt first" in asked
    assert now(row).state == ImportState.READY

    doubts = [doubt_id(one) for one in row.result["doubts"]]
    browser.post(step(row, "confirm"), {"doubt": doubts, "seen": now(row).version})
    assert now(row, run=True).state == ImportState.IMPORTED


def test_the_list_says_which_files_are_in_doubt(staff: User, shelf: Shelf) -> None:
    sure, doubted = upload(staff, CODES, shelf), upload(staff, b"code\n1.23457E+15\n", shelf)

    listed = signed_in(staff).get(list_url(FileImport)).context["cl"].result_list

    page: Any = site.get_model_admin(FileImport)
    states = {row.pk: page.progress(row) for row in listed}
    assert states == {
        sure.pk: ("warning", "Ready to import"),
        doubted.pk: ("warning", "In doubt"),
    }


def test_a_cut_code_is_doubted_and_the_lengths_can_be_read(staff: User, shelf: Shelf) -> None:
    whole = [f"ABCD-{number}" for number in range(1000, 1003)]
    row = upload(staff, "\n".join(["code", *whole, "ABCD"]).encode(), shelf)

    page = signed_in(staff).get(url(row)).text

    assert "1 of 4 do not have 9 characters, the first in line 5" in page
    text = "3 codes of 9 characters, 1 code of 4 characters. 4 codes with capital letters, "
    assert f"{text}3 codes with other signs, 3 codes with digits." in page


def test_the_form_knows_the_currency_of_the_shelf(staff: User) -> None:
    shelf = own_shelf(make_product(currency="EUR"))
    browser = signed_in(staff)
    form = browser.get(upload_url(ImportKind.CODES, shelf)).context["form"]
    assert form["cost_currency"].value() == "EUR"

    for number, cost in enumerate(("", "8.6")):
        fields = {"shelf": shelf.pk, "unit_cost": cost, "cost_currency": "EUR"}
        send(browser, "codes", f"code\nABC-{number}\n".encode(), **fields)

    free, paid = FileImport.objects.order_by("pk")
    assert free.batch == {}
    assert (paid.batch["unit_cost"], paid.batch["cost_currency"]) == ("8.6", "EUR")


def test_all_problems_of_a_file_can_be_downloaded(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    row = upload(staff, b"code\n" + b"A\n" * 10_002, shelf)
    address = reverse("admin:imports_fileimport_problems", args=[row.pk])

    page = browser.get(url(row)).content.decode()
    assert f'href="{address}"' in page
    assert "and 9,981 more" in page

    lines = browser.get(address).content.decode().splitlines()
    assert len(lines) == 10_001
    assert lines[-2:] == ["line 10002 repeats line 2", "and 1 more"]


def test_the_check_shows_what_was_entered_about_the_codes(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    details = {"supplier": "Acme <b>", "unit_cost": "9.12", "cost_currency": "eur"}
    send(browser, "codes", CODES, shelf=shelf.pk, **details, expires_on="2099-12-31")
    row = now(FileImport.objects.get(), run=True)

    page = browser.get(url(row)).content.decode()
    assert "They cost 18.24 EUR together." in page
    assert "<li>Supplier: Acme &lt;b&gt;</li>" in page
    assert "<li>Cost of one code: 9.12 EUR</li>" in page
    assert "<li>Last day of sale: 2099-12-31</li>" in page
    assert "<li>Invoice" not in page


def test_another_file_of_a_delivery_begins_with_its_details(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    details = {"supplier": "Acme", "invoice": "A-7", "unit_cost": "9.12", "cost_currency": "EUR"}
    send(browser, "codes", CODES, shelf=shelf.pk, **details, expires_on="2099-12-31")
    row = FileImport.objects.get()
    jobs.discard_import(pk=now(row, run=True).pk, actor=staff)
    page = browser.get(url(row)).content.decode()
    again = re.search(r'href="([^"]*after=[^"]*)"', page)
    assert again

    form = browser.get(html.unescape(again[1])).context["form"]

    assert {name: form[name].value() for name in details} == details
    assert form["shelf"].value() == str(shelf.pk)
    assert not form["expires_on"].value()
    for odd in ("x", "99999999999999999999999", ""):
        form = browser.get(upload_url(ImportKind.CODES), {"after": odd}).context["form"]
        assert not form["supplier"].value()


def test_a_corrected_file_keeps_the_last_day_of_sale(staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    send(browser, "codes", b"code\nA\nA\n", shelf=shelf.pk, expires_on="2099-12-31")
    row = now(FileImport.objects.get(), run=True)
    assert row.state == ImportState.REFUSED

    form = browser.get(upload_url(ImportKind.CODES), {"after": row.pk}).context["form"]

    assert form["expires_on"].value() == "2099-12-31"


def test_the_form_offers_an_empty_file(staff: User) -> None:
    page = signed_in(staff).get(upload_url(ImportKind.CODES)).content.decode()

    assert 'operators/codes.csv" download' in page
    assert 'operators/codes.xlsx" download' in page


@pytest.mark.parametrize("number", [1, 20])
def test_few_problems_can_be_downloaded_too(number: int, staff: User, shelf: Shelf) -> None:
    browser = signed_in(staff)
    row = upload(staff, b"code\n" + b"A,1\n" * number, shelf)
    address = reverse("admin:imports_fileimport_problems", args=[row.pk])

    assert f'href="{address}"' in browser.get(url(row)).content.decode()
    assert browser.get(address).content.decode().splitlines() == row.problems


def test_an_import_that_stopped_has_no_problems_to_download(staff: User, shelf: Shelf) -> None:
    row = upload(staff, CODES, shelf)
    FileImport.objects.update(state=ImportState.STOPPED, problems=[jobs.UNFINISHED])
    address = reverse("admin:imports_fileimport_problems", args=[row.pk])

    page = signed_in(staff).get(url(row)).content.decode()

    assert "The work on this file ended twice before it was done." in page
    assert address not in page


@pytest.mark.parametrize(("size", "is_taken"), [(0, True), (1, False)], ids=["limit", "above"])
def test_a_catalogue_has_at_most_two_megabytes(size: int, is_taken: bool, staff: User) -> None:
    content = catalogue().ljust(2 * 1024 * 1024 + size)

    page = send(signed_in(staff), "catalogue", content).content.decode()

    assert ("larger than 2 MB. Split it" in page) != is_taken
    if is_taken:
        assert now(FileImport.objects.get(), run=True).state == ImportState.READY


def test_nothing_moves_on_a_get(staff: User, shelf: Shelf) -> None:
    row = upload(staff, CODES, shelf)

    for name in ("confirm", "retry", "discard", "stop"):
        assert signed_in(staff).get(step(row, name)).status_code == 302

    assert now(row).state == ImportState.READY
    assert signed_in(staff).post(step(row, "explode")).status_code == 404


def test_an_empty_file_is_refused(staff: User, shelf: Shelf) -> None:
    page = send(signed_in(staff), "codes", b"", shelf=shelf.pk)

    assert "The submitted file is empty." in page.content.decode()
    assert not FileImport.objects.exists()


def test_a_request_with_a_large_file_is_refused(staff: User, shelf: Shelf) -> None:
    answer = send(signed_in(staff), "codes", b"x" * (3 * 1024 * 1024), shelf=shelf.pk)

    assert answer.status_code == 413
    assert not FileImport.objects.exists()


def test_the_shelf_of_the_page_is_chosen(staff: User) -> None:
    shelf = make_variation(make_product()).shelf
    browser = signed_in(staff)

    page = browser.get(url(shelf).replace("change/", "import-codes/"), follow=True)

    assert f'<option value="{shelf.pk}" selected>{shelf}' in page.content.decode()


def test_progress_and_steps_are_for_those_who_see_imports(staff: User, shelf: Shelf) -> None:
    row = upload(staff, b"code\nA-1\n", shelf)
    other = signed_in(make_staff())

    for page in ("progress", "step/discard"):
        address = url(row).replace("change/", f"{page}/")
        assert other.get(address).status_code == other.post(address).status_code == 403
    assert now(row).state == ImportState.READY


@pytest.mark.parametrize("kind", ImportKind.values)
def test_a_stock_keeper_imports_and_others_do_not(kind: str, shelf: Shelf) -> None:
    manager, reader = make_staff(), make_staff("imports.view_fileimport")
    manager.groups.add(Group.objects.get(name=StaffRole.STOCK_KEEPER.value))
    address = reverse("admin:imports_fileimport_upload", args=[kind])
    row = upload(manager, CODES, shelf)

    of_finance = kind == ImportKind.EXCHANGE_RATES
    assert signed_in(manager).get(address).status_code == (403 if of_finance else 200)
    assert signed_in(reader).get(address).status_code == 403
    assert "Import 2 codes" in signed_in(manager).get(url(row)).content.decode()
    assert "Import 2 codes" not in signed_in(reader).get(url(row)).content.decode()
    assert signed_in(reader).post(step(row, "confirm")).status_code == 403
    assert signed_in(make_staff()).get(url(row)).status_code == 403
    assert now(row).state == ImportState.READY


@pytest.mark.parametrize(
    ("page", "path", "word"),
    [
        (list_url(VoucherCode), "import/", "codes"),
        (list_url(Product), "import/", "catalogue"),
        (list_url(PriceList), "import-prices/", "price_lists"),
        (list_url(ExchangeRate), "import/", "exchange_rates"),
    ],
    ids=["codes", "products", "price lists", "rates"],
)
def test_lists_lead_to_the_upload(page: str, path: str, word: str, staff: User) -> None:
    browser = signed_in(staff)
    assert f"{page}{path}" in browser.get(page).content.decode()

    answer = browser.get(f"{page}{path}")

    assert answer["Location"] == reverse("admin:imports_fileimport_upload", args=[word])
