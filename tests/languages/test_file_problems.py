"""German pages show no English sentence about a mistake in a file."""

import json
import re
from datetime import date
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Q
from django.utils import translation
from openpyxl import Workbook

from catalogue.models import Shelf, VoucherCode
from catalogue.stock.holds import hold_codes
from core.texts import translate_stored
from operators.imports import jobs
from operators.imports.models import ImportKind, ImportState
from operators.imports.pages import PROBLEMS
from tests.factories import (
    add_codes,
    buy_topup,
    make_field,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.languages.test_german_pages import GERMAN, english_words
from tests.languages.test_german_staff_pages import Reader
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db

CATEGORY = {"id": 900_001, "name": "Games"}
PRODUCT = {"id": 900_001, "name": "Game card", "currency": "USD"}
VARIATION = {"id": 900_001, "name": "Small"}
OPTION = {"value": "eu"}
FIELD = {"id": 1, "name": "server", "label": "Server", "type": "text"}
TOP_UP = {**PRODUCT, "price": "1"}


def categories(*rows: Any) -> dict[str, Any]:
    return {"categories": list(rows)}


def products(**values: Any) -> dict[str, Any]:
    return {"products": [{**PRODUCT, **values}]}


def topups(**values: Any) -> dict[str, Any]:
    return {"topup_products": [{**TOP_UP, **values}]}


def fields(*rows: Any) -> dict[str, Any]:
    return topups(fields=list(rows))


OBJECTS: dict[str, Any] = {
    "list": [],
    "unknown list": {"prices": []},
    "unknown name with a colon": categories({**CATEGORY, "my: name": 1}),
    "no list": {"products": {}},
    "no object": {"products": [1]},
    "no values": {"categories": [{}], "products": [{}], "topup_products": [{}]},
    "null": categories({"id": None, "name": None, "active": None}),
    "wrong types": categories({"id": "1", "name": 1, "active": "yes"}),
    "empty name": categories({**CATEGORY, "name": ""}),
    "long name": categories({**CATEGORY, "name": "x" * 201}),
    "NUL": categories({**CATEGORY, "name": "a\0"}),
    "surrogate": categories({**CATEGORY, "name": "a\ud800"}),
    "small id": categories({**CATEGORY, "id": 0}),
    "large id": categories({**CATEGORY, "id": 2**60}),
    "repeated category": categories(CATEGORY, CATEGORY),
    "repeated product": {"products": [PRODUCT, PRODUCT]},
    "repeated variation": products(variations=[VARIATION, VARIATION]),
    "repeated top-up product": {"topup_products": [TOP_UP, TOP_UP]},
    "unknown category": {**products(category=900_009), **topups(category=900_009)},
    "currency": products(currency="usd"),
    "type": products(type="a: b"),
    "step": products(quantity_step=101),
    "no number": products(price="much"),
    "not finite": products(price="NaN"),
    "long number": products(price="9" * 2000),
    "digits": products(price="1234567890123456789"),
    "decimals": products(price="1.23456"),
    "negative": products(price="-1"),
    "many fields": fields(*[{**FIELD, "id": n, "name": f"n{n}"} for n in range(1, 32)]),
    "repeated field": fields(FIELD, FIELD),
    "repeated option": fields({**FIELD, "type": "dropdown", "options": [OPTION, OPTION]}),
    "invisible option": fields({**FIELD, "type": "dropdown", "options": [{"value": "\u200b"}]}),
    "many rows": {"categories": [0] * 50_001},
    "no options": fields({**FIELD, "type": "dropdown"}),
    "type of a field": fields({**FIELD, "type": "date"}),
}
TEXTS = [
    *("{", "[1,]", '{"a":1,}', '{"a" 1}', "[1 2]", "{} x", '"x', '"\t"', '"\\x"', '"\\u12"'),
    *("[" * 100_000, "1" * 5000, '{"a": NaN}', '{"a": 1, "a": 2}', '{"a": 1e999999999999999999}'),
]
HEAD = "kind,id,name,category,type,currency,price,fields,product\n"
TABLES = [
    "id,price\n",
    "kind,id,colour\n",
    f"{HEAD}shelf,1",
    f"{HEAD}category,x,",
    f"{HEAD}category,900001,Games\ncategory,900001,Games",
    f"{HEAD}product,900001,Card,900009,,usd,",
    f"{HEAD}product,900001,Card,900009,,USD,",
    f"{HEAD}product,900001,Card,,,USD,,[]",
    f"{HEAD}variation,900001,Card,,,,,,900001",
    f'{HEAD}topup_product,900001,Card,,,USD,1,"{{"',
    f'{HEAD}topup_product,900001,Card,,,USD,1,"[{{}}, 1]"',
    f'{HEAD}product,900001,"Card',
    f'{HEAD}product,900001,"Card"x',
    f"{HEAD}product,900001,{'x' * 140_000}",
]


CODES = [
    b"name\nA\n",
    b"code\n",
    b"code,pin_code\nA\nB,1,2\n,1\n",
    b"code\nA\nA\n",
    b"code\n" + b"A" * 501 + b"\nA\x01\n",
    b"code\n" + b"A" * 20_000,
    b"code\n\xff\n",
    b'code\n"A',
    b'code\n"A"x\n',
    b"PK\x03\x04 no workbook",
]


def problems_of(content: str | bytes, name: str, shelf: Shelf | None = None) -> set[str]:
    """The English words of the German page of a refused file, without the names of places."""
    staff = make_staff(superuser=True)
    row = jobs.upload_file(
        kind=ImportKind.CODES if shelf else ImportKind.CATALOGUE,
        content=content.encode() if isinstance(content, str) else content,
        file_name=name,
        shelf=shelf,
        actor=staff,
        token=uuid4(),
    )
    jobs.run_import(pk=row.pk)
    row.refresh_from_db()
    assert row.state == ImportState.REFUSED
    texts = "\n".join(Reader(signed_in(staff).get(url(row), headers=GERMAN).text).texts)
    words = {part for one in row.problems for part in re.split(r"[:,] | \(", one) if " " in part}
    assert words
    return {part for part in words if part in texts}


@pytest.mark.parametrize("case", OBJECTS)
def test_a_mistake_in_an_object_is_in_german(case: str) -> None:
    assert problems_of(json.dumps(OBJECTS[case]), "new.json") == set()


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_a_mistake_in_json_is_in_german(text: str) -> None:
    assert problems_of(text, "new.json") == set()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[-20:])
def test_a_mistake_in_a_table_is_in_german(table: str) -> None:
    assert problems_of(table, "new.csv") == set()


@pytest.mark.parametrize("name", ["new.json", "new.csv"])
def test_a_file_in_another_encoding_is_refused_in_german(name: str) -> None:
    assert problems_of("Größe".encode("latin-1"), name) == set()


def test_a_mistake_about_stored_rows_is_in_german() -> None:
    product, other, topup = make_product(codes=1), make_product(), make_topup_product()
    variation = make_variation(other)
    field = make_field(topup)
    merchant = make_merchant()
    merchant.buy(product_id=product.pk, quantity=1)
    buy_topup(merchant, topup, fields={str(field.number): "eu"})
    moved = {"id": variation.pk, "name": "Small"}
    changed = {"id": field.number, "name": "other", "label": "Other", "type": "text"}
    content = {
        "products": [{**PRODUCT, "id": product.pk, "currency": "EUR", "variations": [moved]}],
    }
    assert problems_of(json.dumps(content), "new.json") == set()
    content = {
        "topup_products": [{**TOP_UP, "id": topup.pk, "currency": "EUR", "fields": [changed]}]
    }
    assert problems_of(json.dumps(content), "new.json") == set()


@pytest.mark.parametrize("file", CODES, ids=lambda file: file[-20:])
def test_a_mistake_in_a_file_of_codes_is_in_german(file: bytes) -> None:
    assert problems_of(file, "new.csv", own_shelf(make_product())) == set()


def test_a_mistake_in_a_workbook_is_in_german() -> None:
    book = Workbook()
    for row in (["code"], [date(2026, 1, 1)], ["#DIV/0!"]):
        book.worksheets[0].append(row)
    assert problems_of(saved(book), "new.xlsx", own_shelf(make_product())) == set()
    book.create_sheet().append(["code"])
    assert problems_of(saved(book), "new.xlsx", own_shelf(make_product())) == set()


def saved(book: Workbook) -> bytes:
    content = BytesIO()
    book.save(content)
    return content.getvalue()


def test_a_code_that_is_stored_is_refused_in_german() -> None:
    product = make_product()
    shelf = own_shelf(product)
    codes = add_codes(shelf, 3)
    make_merchant().buy(product_id=product.pk, quantity=1)
    next_code = VoucherCode.objects.filter(shelf=shelf, order_id=None).earliest("position")
    hold_codes(codes=Q(pk=next_code.pk), reason="recalled", held_by="test")
    assert problems_of("\n".join(["code", *codes]), "new.csv", shelf) == set()


REFERENCES = "product_id,variation_id,reference\n"
LONG = "x" * 65


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"\xff",
        b"x,y\n",
        b"," * 100,
        f"{REFERENCES}1,,!?\nx,,a\n1,x,a\n1,,{LONG}\n".encode(),
        f"{REFERENCES}900001,,a\n900002,5,b\n".encode(),
        f"{REFERENCES}900001,,a\n900001,,b\n900003,,a\n".encode(),
        f'{REFERENCES}1,,"a'.encode(),
        b"x" * 2_000_000,
    ],
    ids=lambda file: file[-20:],
)
def test_a_mistake_in_a_file_of_references_is_in_german(file: bytes) -> None:
    browser = browser_of(make_member())
    sent = SimpleUploadedFile("new.csv", file)
    page = browser.post("/merchant/references/import/", {"file": sent}, headers=GERMAN)
    assert page.status_code == 200
    assert "Nichts wurde geändert." in page.text or not file
    assert english_words(page.text) == []


def test_a_problem_is_translated_inside_its_place() -> None:
    with translation.override("de"):
        assert (
            translate_stored("line 3, id: repeats line 2, id", *PROBLEMS)
            == "Zeile 3, id: wiederholt Zeile 2, id"
        )
