"""Merchant references are set one by one or by a CSV file."""

import csv
import io
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from audit.models import AuditAction, AuditEntry
from catalogue.models import ReferenceLink, Shelf
from merchants.models import Membership, Role
from tests.factories import link, make_category, make_product, make_variation, own_shelf
from tests.merchants.people import browser_of, make_member
from tests.neighbour import ours

pytestmark = pytest.mark.django_db

NAME, IMPORT = "/merchant/references/name/", "/merchant/references/import/"


@pytest.fixture
def owner() -> Membership:
    return make_member()


@pytest.fixture
def browser(owner: Membership) -> Client:
    return browser_of(owner)


def names(owner: Membership) -> dict[int, str]:
    """The account's references by shelf id."""
    links = ReferenceLink.objects.filter(account=owner.account)
    return dict(links.values_list("shelf_id", "reference"))


def check(browser: Client, text: str | bytes) -> str:
    """The page of a file: what is wrong with it, or what it would change."""
    data = text.encode() if isinstance(text, str) else text
    answer = browser.post(IMPORT, {"file": SimpleUploadedFile("names.csv", data)}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def confirm(browser: Client, page: str, **more: Any) -> str:
    """The page after the listed changes were confirmed."""
    answer = browser.post(IMPORT, {"checked": signed_in_page(page), **more}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def signed_in_page(page: str) -> str:
    found = re.search(r'name="checked" value="([^"]+)"', page)
    return found[1] if found else ""


def send(browser: Client, text: str | bytes) -> str:
    page = check(browser, text)
    return confirm(browser, page) if signed_in_page(page) else page


def test_a_reference_is_set_and_removed(owner: Membership, browser: Client) -> None:
    product = make_product(codes=1)
    shelf = make_variation(product, codes=1).shelf
    answer = browser.post(
        NAME, {"product": product.pk, "variation": shelf.variation_id, "reference": " Größe #7 "}
    )
    assert answer.status_code == 302
    assert names(owner) == {shelf.pk: "Größe #7"}
    page = browser.get("/merchant/references/").content.decode()
    assert 'value="Größe #7"' in page
    assert AuditEntry.objects.get(action=AuditAction.REFERENCE_LINKED).reference == "Größe #7"

    browser.post(NAME, {"product": product.pk, "variation": shelf.variation_id, "reference": ""})
    assert names(owner) == {}
    assert AuditEntry.objects.get(action=AuditAction.REFERENCE_UNLINKED).reference == "Größe #7"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("x" * 65, "at most 64 characters; this one has 65"),
        ("-abc", "starts with a letter or digit, not with -"),
        ("ab@c", "character 3 is @"),
        ("a\x00b", "character 2 is U+0000"),
        ("a\tb", "character 2 is U+0009"),
        ("_x", "not with _"),
        ("a💶", "character 2 is 💶"),
    ],
)
def test_the_broken_rule_is_explained(
    owner: Membership, browser: Client, typed: str, said: str
) -> None:
    product = make_product()
    answer = browser.post(NAME, {"product": product.pk, "reference": typed})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert said in page
    assert names(owner) == {}


def test_moving_a_reference_needs_a_confirmation(owner: Membership, browser: Client) -> None:
    old, new = make_product(), make_product()
    link(owner.account, "gift", own_shelf(old))
    asked = browser.post(NAME, {"product": new.pk, "reference": "gift", "page": 1, "search": "P"})
    assert "is your reference for" in asked.content.decode()
    assert names(owner) == {own_shelf(old).pk: "gift"}
    moved = browser.post(
        NAME, {"product": new.pk, "reference": "gift", "move_from": own_shelf(old).pk}
    )
    assert moved.status_code == 302
    assert names(owner) == {own_shelf(new).pk: "gift"}


def test_a_confirmation_counts_only_for_the_shelf_it_named(
    owner: Membership, browser: Client
) -> None:
    asked_about, meanwhile, new = (own_shelf(make_product()) for _ in range(3))
    link(owner.account, "gift", meanwhile)
    answer = browser.post(
        NAME, {"product": new.product_id, "reference": "gift", "move_from": asked_about.pk}
    )
    assert "is your reference for" in answer.content.decode()
    assert names(owner) == {meanwhile.pk: "gift"}


def test_a_file_may_move_a_reference_from_a_shelf_off_sale(
    owner: Membership, browser: Client
) -> None:
    gone, new = own_shelf(make_product(active=False)), own_shelf(make_product())
    link(owner.account, "gift", gone)
    head = "product_id,variation_id,merchant_reference"
    assert "References set: 1." in send(browser, f"{head}\n{new.product_id},,gift\n")
    assert names(owner) == {new.pk: "gift"}


def test_a_hidden_shelf_cannot_get_a_reference(owner: Membership, browser: Client) -> None:
    hidden = [
        make_product(active=False).pk,
        make_product(category=make_category(active=False)).pk,
        10**9,
        2**63,
        -1,
        "x",
    ]
    for product in hidden:
        answer = browser.post(NAME, {"product": product, "reference": "gift"})
        assert answer.status_code == 404
        assert "catalogue has no product" in send(
            browser, f"product_id,variation_id,merchant_reference\n{product},,gift\n"
        ) or "must be whole numbers" in send(
            browser, f"product_id,variation_id,merchant_reference\n{product},,gift\n"
        )
    assert names(owner) == {}


def test_an_export_is_imported(owner: Membership, browser: Client) -> None:
    product = make_product(name="=HYPERLINK()")
    variation = make_variation(product)
    link(owner.account, "one ", own_shelf(product))  # the contract allows a space at the end
    answer: Any = browser.get("/merchant/references/export/")
    text = answer.content.decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [
        (row["product_id"], row["variation_id"], row["merchant_reference"]) for row in rows
    ] == [
        (str(product.pk), "", "one "),
        (str(product.pk), str(variation.pk), ""),
    ]
    assert rows[0]["product"] == "'=HYPERLINK()"  # not a formula
    assert "References set: 0. References removed: 0." in send(browser, text)
    assert names(owner) == {own_shelf(product).pk: "one "}


def test_a_german_workbook_is_imported(owner: Membership, browser: Client) -> None:
    link(owner.account, "007", own_shelf(make_product()))
    address = "/merchant/references/references.xlsx"
    answer: Any = browser.get(address, headers={"Accept-Language": "de"})
    said = send(browser, answer.getvalue())
    assert "References set: 0. References removed: 0." in said


def test_a_file_sets_swaps_and_removes_references(owner: Membership, browser: Client) -> None:
    a, b, c = (own_shelf(make_product()) for _ in range(3))
    link(owner.account, "A", a)
    link(owner.account, "B", b)
    said = send(
        browser,
        "\ufeffproduct_id;variation_id;merchant_reference;product\r\n"
        f"{a.product_id};;B;\r\n{b.product_id};;;x\r\n{c.product_id};;A;\r\n",
    )
    assert "References set: 2. References removed: 1." in said
    assert names(owner) == {a.pk: "B", c.pk: "A"}


HEAD = "product_id,variation_id,merchant_reference"


def test_changes_are_listed_before_they_are_made(owner: Membership, browser: Client) -> None:
    kept, swapped, renamed, new = (own_shelf(make_product()) for _ in range(4))
    off_sale = own_shelf(make_product(active=False))
    before = {kept: "kept", swapped: "hers", renamed: "old", off_sale: "his"}
    for shelf, name in before.items():
        link(owner.account, name, shelf)
    after = {kept: "kept", swapped: "his", renamed: "other", new: "hers"}
    lines = [f"{shelf.product_id},,{name}" for shelf, name in after.items()]

    page = check(browser, "\n".join([HEAD, *lines]))

    assert names(owner) == {shelf.pk: name for shelf, name in before.items()}
    cells = [
        re.sub(r"<[^>]*>|\s+", " ", row).split()
        for row in page.partition("<tbody>")[2].split("<tr>")
    ]
    listed = [" ".join(row) for row in cells if row]
    first, second, third, fourth = listed[:4]
    assert f"{swapped} {swapped.product_id} hers his buys something else" in first
    assert f"{new} {new.product_id} \u2013 hers buys something else" in second
    assert f"{renamed} {renamed.product_id} old buys nothing other" in third
    assert f"{off_sale} {off_sale.product_id} his \u2013" in fourth
    assert "References to set: 3. References to remove: 1. Rows without a change: 1." in page
    assert "References set: 3. References removed: 1." in confirm(browser, page)
    assert names(owner) == {shelf.pk: name for shelf, name in after.items()}
    assert AuditEntry.objects.get(action=AuditAction.REFERENCE_LINKED).note == (
        "By file: 3 set, 1 removed."
    )


def test_all_changes_are_a_file(owner: Membership, browser: Client) -> None:
    shelves = [own_shelf(make_product()) for _ in range(51)]
    lines = [f"{shelf.product_id},,A{shelf.product_id}" for shelf in shelves]
    page = check(browser, "\n".join([HEAD, *lines]))
    assert "1 more change." in page

    sent = {"checked": signed_in_page(page), "download": "1"}
    file: Any = browser.post(IMPORT, sent)

    rows = list(csv.DictReader(io.StringIO(file.content.decode("utf-8-sig"))))
    assert [(row["before"], row["after"]) for row in rows] == [
        ("", f"A{shelf.product_id}") for shelf in shelves
    ]
    assert names(owner) == {}


def test_each_doubt_about_references_is_confirmed(owner: Membership, browser: Client) -> None:
    shelf = own_shelf(make_product())
    page = check(browser, f"{HEAD}\n{shelf.product_id},,NULL\n")
    assert "the word NULL may stand for nothing" in page
    assert "confirm each doubt first" in confirm(browser, page)
    assert "confirm each doubt first" in confirm(browser, page, doubt="00000000")
    assert names(owner) == {}
    (doubt,) = re.findall(r'name="doubt" value="([0-9a-f]+)"', page)
    assert "References set: 1." in confirm(browser, page, doubt=doubt)
    assert names(owner) == {shelf.pk: "NULL"}


def test_changes_that_have_moved_are_listed_again(owner: Membership, browser: Client) -> None:
    shelf, other = own_shelf(make_product()), own_shelf(make_product())
    page = check(browser, f"{HEAD}\n{shelf.product_id},,new\n{other.product_id},,two\n")
    link(owner.account, "meanwhile", shelf)
    again = confirm(browser, page)
    assert "Your references have changed meanwhile. Nothing was changed." in again
    assert names(owner) == {shelf.pk: "meanwhile"}
    assert "<td>meanwhile <" in again
    assert "References set: 2." in confirm(browser, again)

    page = check(browser, f"{HEAD}\n{shelf.product_id},,new2\n")
    third = own_shelf(make_product())
    link(owner.account, "new2", third)
    assert "he reference &#x27;new2&#x27; belongs to" in confirm(browser, page)


def test_a_doubt_that_is_not_confirmed_and_a_taken_reference_are_explained(
    owner: Membership, browser: Client
) -> None:
    shelf, other = (own_shelf(make_product()) for _ in range(2))
    page = check(browser, f"{HEAD}\n{shelf.product_id},,NULL\n")
    link(owner.account, "NULL", other)
    assert "he reference &#x27;NULL&#x27; belongs to" in confirm(browser, page)


def test_a_list_of_changes_is_for_one_member(owner: Membership, browser: Client) -> None:
    shelf = own_shelf(make_product())
    page = check(browser, f"{HEAD}\n{shelf.product_id},,new\n")
    for other in (make_member(), make_member(owner.account)):
        assert "Choose the file again" in confirm(browser_of(other), page)
    assert "Choose the file again" in browser.post(IMPORT, {"checked": "x"}, follow=True).text
    assert names(owner) == {}


def test_a_file_with_a_mistake_changes_nothing_and_reports_the_line(
    owner: Membership, browser: Client
) -> None:
    a, b = (own_shelf(make_product()) for _ in range(2))
    link(owner.account, "taken", b)
    good = f"{a.product_id},,fine"
    head = "product_id,variation_id,merchant_reference"
    for text, said in {
        f"{head}\n{good}\nx,,y\n": "Line 3: product_id and variation_id must be whole numbers",
        f"{head}\n{good}\n{b.product_id},,-no\n": "Line 3: A reference starts with",
        f"{head}\n{good}\n{good}\n": "Line 3: line 2 has the same product or variation",
        f"{head}\n{good}\n{b.product_id},,fine\n": "Line 3: the same reference is in line 2",
        f"{head}\n{a.product_id},,taken\n": "or remove its reference first",
        f"{head}\n{a.product_id},7777777,fine\n": "has no product",
        "product_id,merchant_reference\n": "has no heading variation_id",
        "": "empty",
        f'{head}\n"open': "Line 2: a quotation mark in this line or above it is not",
    }.items():
        assert said in send(browser, text), text
    assert "Line 2: not UTF-8" in send(browser, f"{head}\n1,,".encode() + b"\xff\n")
    assert "larger than" in send(browser, b"x" * 2_000_001)
    assert names(owner) == {b.pk: "taken"}


def test_columns_that_a_row_lacks_cost_nothing(owner: Membership, browser: Client) -> None:
    """A file of 2 MB with 970,000 columns and 20,000 short rows held a thread for minutes."""
    head = "product_id,variation_id,merchant_reference"
    wide = head + "," * 970_000 + "\n" + "1\n" * 20_000

    assert "longer than 16,384 characters" in send(browser, wide)
    assert "whole numbers" in send(browser, head + "\n" + "x\n" * 100)
    assert names(owner) == {}


def test_references_of_other_accounts_do_not_collide(owner: Membership, browser: Client) -> None:
    shelf, other = own_shelf(make_product()), make_member()
    link(other.account, "gift", shelf)
    browser.post(NAME, {"product": shelf.product_id, "reference": "gift"})
    assert names(owner) == names(other) == {shelf.pk: "gift"}


def test_a_viewer_only_reads_references(owner: Membership) -> None:
    product = make_product(name="Card")
    link(owner.account, "their name", own_shelf(product))
    viewer = browser_of(make_member(owner.account, Role.VIEWER))
    page = viewer.get("/merchant/references/?search=car&page=x").content.decode()
    assert "their name" in page
    assert '<button class="plain">Save' not in page
    assert viewer.post(NAME, {"product": product.pk, "reference": "x"}).status_code == 403


def test_the_list_has_pages_and_tolerates_bad_queries(browser: Client) -> None:
    make_product()
    assert "Page 1 of 1, 1 product<" in browser.get("/merchant/references/").content.decode()
    for _ in range(50):
        make_product()
    assert "Page 1 of 2, 51 products" in browser.get("/merchant/references/").content.decode()
    for query in (
        "page=2",
        "page=0",
        "page=99999999999999999999",
        "page=-1",
        "search=%00",
        "page=²",
    ):
        assert browser.get(f"/merchant/references/?{query}").status_code == 200
    assert ours(Shelf).count() == 51
