"""Staff import voucher codes in a real browser: upload, check, problems, progress, result."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Page, Route, expect

from catalogue.models import Batch, PriceList, Shelf, VoucherCode
from catalogue.price_lists import Target, Terms, add_price_entry
from operators.imports import jobs
from operators.imports.models import FileImport, FilePart, ImportKind
from operators.imports.pages import upload_url
from tests.browsing import take_session
from tests.factories import make_product, own_shelf
from tests.live import LiveServer
from tests.operators.back_office import make_staff, signed_in, url
from tests.spreadsheets import row, rows, sheet, text, workbook

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture
def shelf(transactional_db: None) -> Shelf:
    return own_shelf(make_product())


@pytest.fixture
def page(server: LiveServer, chromium: Browser, shelf: Shelf) -> Page:
    page = chromium.new_page(base_url=server.base_url)
    take_session(page, server, signed_in())
    return page


def file(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def codes(*lines: str) -> FilePayload:
    return file("delivery.csv", "\n".join(["code", *lines, ""]).encode())


def upload(page: Page, shelf: Shelf, file: FilePayload) -> None:
    page.goto(url(shelf))
    with page.expect_navigation():  # until the scripts of the form listen
        page.get_by_role("link", name="Import codes").first.click()
    page.set_input_files("[name=file]", file)
    page.get_by_role("button", name="Upload and check").click()


@pytest.mark.usefixtures("worker")
def test_codes_are_checked_then_imported(page: Page, shelf: Shelf) -> None:
    upload(page, shelf, codes("A-1", "A-2", "A-1"))
    expect(page.get_by_text("Nothing was imported.")).to_be_visible()
    expect(page.get_by_text("line 4 repeats line 2")).to_be_visible()

    with page.expect_navigation():  # until the scripts of the form listen
        page.get_by_role("link", name="Upload another file").click()
    field = page.locator("[name=file]")
    field.evaluate(
        """(field, size) => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(size)], "large.csv"));
            field.files = files.files;
            field.dispatchEvent(new Event("change"));
        }""",
        jobs.MAX_BYTES[ImportKind.CODES] + 1,
    )
    said = field.evaluate("field => field.validationMessage")
    assert said == "This file is too large. At most 64 MB."
    page.set_input_files("[name=file]", codes(*(f"B-{number}" for number in range(1200))))
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Import 1,200 codes").click()
    expect(page.get_by_text(re.compile("1,200 codes were added to"))).to_be_visible()

    assert VoucherCode.objects.filter(shelf=shelf).count() == 1200
    assert Shelf.objects.get(pk=shelf.pk).available_stock == 1200
    assert not FileImport.objects.exclude(sealed=None).exists()


def test_a_cost_without_a_currency_is_not_sent(page: Page, shelf: Shelf) -> None:
    page.goto(upload_url(ImportKind.CODES, shelf))
    page.set_input_files("[name=file]", codes("A-1"))
    page.fill("[name=unit_cost]", "9.12")
    currency = page.locator("[name=cost_currency]")
    expect(currency).to_have_value("USD")  # of the shelf
    currency.fill("")
    page.get_by_role("button", name="Upload and check").click()
    expect(currency).to_be_focused()
    assert not FileImport.objects.exists()

    page.fill("[name=unit_cost]", "")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("Checking the file.")).to_be_visible()


@pytest.mark.usefixtures("worker")
def test_problems_doubts_and_changes_are_met_on_the_way(page: Page, shelf: Shelf) -> None:
    """A file with a problem, one with a doubt, its batch, and a catalogue with changes."""
    upload(page, shelf, codes("A-1", "#N/A"))
    expect(page.get_by_text("line 3: code is an error of a spreadsheet: #N/A")).to_be_visible()

    with page.expect_navigation():
        page.get_by_role("link", name="Upload another file").click()
    hidden = row(3, text("B-2"), text("0002"), more=' hidden="1"')
    book = workbook(sheet(rows(["code", "pin_code"], ["B-1", "NULL"]) + hidden), names=["Delivery"])
    page.set_input_files("[name=file]", file("delivery.xlsx", book))
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("The sheet “Delivery” is read.")).to_be_visible()
    boxes = page.get_by_role("checkbox", name="I checked this: the file is right.")
    expect(boxes).to_have_count(2)
    expect(page.get_by_text("Hidden or filtered rows have values")).to_be_visible()
    boxes.first.check()
    page.get_by_role("button", name="Import 2 codes").click()
    assert not VoucherCode.objects.filter(shelf=shelf).exists()
    boxes.last.check()
    page.get_by_role("button", name="Import 2 codes").click()

    page.get_by_role("link", name="The batch of these codes").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("batch", re.IGNORECASE))
    assert page.url.endswith(url(Batch.objects.get(shelf=shelf)))

    product = shelf.product
    page.goto(upload_url(ImportKind.CATALOGUE))
    lines = [
        "kind,id,name,currency,active,price,quantity_step",
        f"product,{product.pk},New name,USD,false,9.00,2",
    ]
    page.set_input_files("[name=file]", file("catalogue.csv", "\n".join(lines).encode()))
    page.get_by_role("button", name="Upload and check").click()
    changes = page.locator("table", has_text="Price of one code").locator("tbody tr")
    expect(changes).to_have_count(4)
    expect(changes.nth(0)).to_contain_text(re.compile("price.*lower price.*9.9900.*9.0000", re.S))
    expect(changes.nth(0)).to_contain_text("9.9900 → 4.5000")
    expect(changes.nth(1)).to_contain_text(re.compile("quantity step.*other step", re.S))
    expect(changes.nth(2)).to_contain_text(re.compile("active.*switched on or off", re.S))
    expect(changes.nth(3)).to_contain_text(re.compile(f"{product.name}.*New name", re.S))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all changes").click()
    assert download.value.path().read_text("utf-8-sig").count("\n") == 5
    page.get_by_role("button", name="Discard the file").click()
    expect(page.get_by_text("The file was deleted, and nothing was imported.")).to_be_visible()
    product.refresh_from_db()
    assert product.active


@pytest.mark.usefixtures("worker")
def test_a_large_file_is_sent_in_parts_and_again_after_a_failure(page: Page, shelf: Shelf) -> None:
    failures = iter([503])

    def fail_once(route: Route) -> None:
        if next(failures, None):
            route.abort()
        else:
            route.continue_()

    page.route("**/upload/part/", fail_once)
    upload(page, shelf, codes(*(f"LARGE-{number:0400}" for number in range(3000))))

    page.get_by_role("button", name="Import 3,000 codes").click()
    expect(page.get_by_text(re.compile("3,000 codes were added to"))).to_be_visible()
    assert VoucherCode.objects.filter(shelf=shelf).count() == 3000
    assert FileImport.objects.get().file_name == "delivery.csv"
    assert not FilePart.objects.exists()


def test_an_upload_that_is_refused_says_so(page: Page, shelf: Shelf) -> None:
    page.route("**/upload/part/", lambda route: route.fulfill(status=403))
    upload(page, shelf, codes(*(f"LARGE-{number:0400}" for number in range(3000))))

    expect(
        page.get_by_text("The upload was refused. You may have been logged out.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Upload and check")).to_be_enabled()


def test_the_page_follows_the_progress(page: Page, shelf: Shelf) -> None:
    upload(page, shelf, codes("A-1"))
    expect(page.get_by_text("Checking the file.")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()

    jobs.run_import(pk=FileImport.objects.get().pk)

    expect(page.get_by_role("button", name="Import 1 code")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)


@pytest.mark.usefixtures("worker")
def test_a_list_is_exported_changed_and_imported(page: Page, shelf: Shelf) -> None:
    gold = PriceList.objects.create(name="Gold", currency="USD")
    entry = add_price_entry(
        price_list_id=gold.pk,
        target=Target(product_id=shelf.product_id),
        terms=Terms(price=Decimal(9)),
        actor=make_staff(superuser=True),
    )
    page.goto(url(gold))
    with page.expect_navigation():  # until the scripts of the form listen
        page.get_by_role("link", name="Import or export…").first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV", exact=True).click()
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    changed = text.replace(",9.00,", ",8.90,").encode()
    page.set_input_files(
        "[name=file]", {"name": "prices.csv", "mimeType": "text/csv", "buffer": changed}
    )
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("lower price")).to_be_visible()
    expect(page.get_by_role("cell", name="fixed 8.90")).to_be_visible()
    page.get_by_role("button", name="Make these changes").click()
    expect(page.get_by_text("The file was imported.")).to_be_visible()

    entry.refresh_from_db()
    new = gold.entries.get(valid_until=None)
    assert (new.price, entry.valid_until) == (Decimal("8.90"), new.valid_from)
