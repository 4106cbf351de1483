"""Staff find a code by its text, serial number or PIN; no text is stored."""

import pytest
from django.db import connection

from catalogue.imports.code_import import add_codes
from catalogue.models import CodeTrace, Shelf, VoucherCode
from catalogue.stock import traces
from catalogue.stock.codes import Code
from catalogue.stock.traces import find_codes, trace_codes
from tests.factories import make_batch, make_merchant, make_product, own_shelf
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return own_shelf(make_product(price="1.00"))


def stock(shelf: Shelf, *codes: Code) -> list[VoucherCode]:
    add_codes(shelf=shelf, rows=list(enumerate(codes)))
    return list(ours(VoucherCode).filter(shelf=shelf).order_by("pk"))


@pytest.mark.parametrize("text", ["AAAA-1", "SER 001-77", "ser001-77", "998-877"])
def test_a_code_is_found_by_each_of_its_parts(text: str, shelf: Shelf) -> None:
    one, _ = stock(shelf, Code("AAAA-1", "SER001-77", "998877"), Code("BBBB-1", "OTHER-1", "1"))
    trace_codes()

    found = find_codes(text)

    assert found == [one]


def test_short_parts_have_no_trace(shelf: Shelf) -> None:
    stock(shelf, Code("AAAA-1", "A-1234", "0012"))
    trace_codes()

    assert not CodeTrace.objects.filter(code__shelf=shelf).exists()
    assert find_codes("0012") == find_codes("A-1234") == []


def test_the_newest_of_many_codes_with_one_pin_are_found(shelf: Shelf) -> None:
    rows = stock(shelf, *(Code(f"CODE-{number}", pin_code="123456") for number in range(7)))
    trace_codes()

    assert find_codes("123456") == rows[:1:-1]


def test_the_task_goes_on_where_it_stopped(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    trace_codes()
    monkeypatch.setattr(traces, "BATCH", 2)
    rows = stock(shelf, *(Code(f"CODE-{number}", f"SERIAL-{number}") for number in range(7)))

    assert [trace_codes(at_most=4), trace_codes(at_most=4), trace_codes()] == [4, 3, 0]

    for number, row in enumerate(rows):
        assert find_codes(f"SERIAL-{number}") == [row]


def test_no_text_is_stored_or_sent_to_the_database(shelf: Shelf) -> None:
    stock(shelf, Code("AAAA-1", "SERIAL-0001", "998877"))
    trace_codes()
    statements: list[str] = []

    def record(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        statements.append(f"{sql} {params}")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        assert find_codes("SERIAL-0001")
    assert not any("SERIAL" in one for one in statements)
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(trace::text, ' ') FROM catalogue_codetrace AS trace")
        (stored,) = cursor.fetchone()
    assert "SERIAL" not in stored
    assert "998877" not in stored


def test_the_page_says_where_a_code_is_and_does_not_show_it(shelf: Shelf) -> None:
    batch, merchant = make_batch(shelf, 1), make_merchant()
    assert merchant.buy(product_id=shelf.product_id, quantity=1).status_code == 201
    code = ours(VoucherCode).get(shelf=shelf)

    page = signed_in().get(url(code)).content.decode()

    assert f">{batch}</a>" in page
    assert f">{merchant.account}</a>" in page


def test_search_by_serial_number_needs_the_right_to_see_codes(shelf: Shelf) -> None:
    (code,) = stock(shelf, Code("AAAA-1", "SERIAL-0001"))
    trace_codes()
    sent = {"text": "SERIAL-0001"}

    answer = signed_in(make_staff("catalogue.view_vouchercode")).post("/admin/search/", sent)
    assert answer["Location"] == url(code)

    page = signed_in(make_staff("catalogue.view_product")).post("/admin/search/", sent)
    assert "voucher code" in page.content.decode()
    assert url(code) not in page.content.decode()
