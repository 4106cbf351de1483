"""`import_codes` puts a file's codes on a shelf: all of them, once, in their order; or none."""

import csv
import io
import os
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis.extra.django import TestCase

from catalogue.imports.code_import import import_codes
from catalogue.models import Batch, Product, Shelf, VoucherCode
from catalogue.stock.codes import SEPARATORS, normal_form, open_code
from core.files import csv_cells
from core.files.cells import ERROR_WORDS, first_invisible, plain_text, without_marks
from core.files.tables import NOT_UTF_8
from operators.upkeep.reconcile import reconcile
from tests.commands import refusal, run, run_confirmed
from tests.concurrency.racing import in_background, scalar
from tests.factories import make_merchant, make_product, make_variation, own_shelf
from tests.generating import given, st
from tests.neighbour import ours


@pytest.fixture
def product(db: None) -> Product:
    return make_product()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "codes.csv"


def stock(product: Product) -> list[dict[str, str]]:
    """The codes on the product's own shelf, as they would be handed over, in order of sale."""
    rows = VoucherCode.objects.filter(shelf=own_shelf(product)).order_by("position")
    return [open_code(row.sealed, row.digest).as_json() for row in rows]


def test_codes_are_sold_as_they_came(product: Product, file: Path) -> None:
    file.write_text("code,serial_number,pin_code\nB,S1,0012\nA,,\nC,S3,\n")

    printed = run("import_codes", product.pk, file)

    assert printed == {
        "product_id": product.pk,
        "variation_id": None,
        "batch": Batch.objects.get().pk,
        "imported": 3,
        "available_stock": 3,
    }
    order = make_merchant().buy(product_id=product.pk, quantity=3).json()["data"]
    assert order["codes"] == [
        {"code": "B", "serial_number": "S1", "pin_code": "0012"},
        {"code": "A"},
        {"code": "C", "serial_number": "S3"},
    ]


def test_a_check_shows_outlines_and_imports_nothing(product: Product, file: Path) -> None:
    file.write_text("code,pin_code\nABCD-1234,77\n1.23457E+15,78\n")

    checked = run("import_codes", product.pk, file, "--check")

    assert checked["codes"] == 2
    assert checked["sample"][0] == "code: AAAA-9999, pin_code: 99"
    assert "1 rounded number" in str(checked["doubts"])
    assert stock(product) == []


def test_a_check_shows_where_codes_would_go_and_what_they_cost(
    product: Product, file: Path
) -> None:
    variation = make_variation(product)
    file.write_text("code\nA\nB\nC\n")
    words = ("--unit-cost", "9.12", "--cost-currency", "EUR")

    free = run("import_codes", product.pk, file, "--check")
    paid = run("import_codes", product.pk, file, "--variation", variation.pk, "--check", *words)

    cost = ("unit_cost", "total_cost", "cost_currency")
    assert (free["product_id"], free["variation_id"]) == (product.pk, None)
    assert (free["shelf"], [free[name] for name in cost]) == (product.name, [None] * 3)
    assert (paid["product_id"], paid["variation_id"]) == (product.pk, variation.pk)
    assert paid["shelf"] == f"{product.name} / {variation.name}"
    assert [paid[name] for name in cost] == [Decimal("9.12"), Decimal("27.36"), "EUR"]
    assert "needs a currency" in refusal("import_codes", product.pk, file, "--check", *words[:2])


def test_a_variation_has_a_shelf_of_its_own(product: Product, file: Path) -> None:
    variation = make_variation(product)
    file.write_text("code\nA\n")

    assert run("import_codes", product.pk, file, "--variation", variation.pk)["imported"] == 1

    assert Shelf.objects.get(variation=variation).available_stock == 1
    assert own_shelf(product).available_stock == 0


@pytest.mark.parametrize(
    "content",
    [
        b"code,serial_number,pin_code\nA,1,2\nB,3,4",
        b"\xef\xbb\xbfcode,serial_number,pin_code\r\nA,1,2\r\nB,3,4\r\n",
        b'"code","serial_number","pin_code"\n"A","1","2"\n\n"B","3","4"\n\n',
        b"pin_code, Code ,serial_number\n2, A ,1\n4,B,3\n",
        b"code;serial_number;pin_code\r\nA;1;2\r\nB;3;4\r\n",
        b"CODE\tSerial number\tPIN-Code\nA\t1\t2\nB\t3\t4\n",
    ],
    ids=["plain", "BOM and CRLF", "quotes and blank lines", "other order", "semicolons", "tabs"],
)
def test_files_as_they_come(product: Product, file: Path, content: bytes) -> None:
    file.write_bytes(content)

    run("import_codes", product.pk, file)

    assert stock(product) == [
        {"code": "A", "serial_number": "1", "pin_code": "2"},
        {"code": "B", "serial_number": "3", "pin_code": "4"},
    ]


def test_quoted_and_foreign_letters_survive(product: Product, file: Path) -> None:
    file.write_text('code,serial_number\n"A,""B""\tC"\n'.replace("\t", " "), encoding="utf-8")
    refusal("import_codes", product.pk, file)  # one column is missing
    file.write_text('code,serial_number\n"A,""B"" \\x41 \\N",Ключ✓\n', encoding="utf-8")

    assert "(Cyrillic)" in refusal("import_codes", product.pk, file)
    run_confirmed("import_codes", product.pk, file)

    assert stock(product) == [{"code": 'A,"B" \\x41 \\N', "serial_number": "Ключ✓"}]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "The first line names the columns"),
        (b"A\nB\n", "The first line names the columns"),
        (b"code|pin_code\nA|1\n", "The first line names the columns"),
        (b"code,code\nA,B\n", "The first line names the columns"),
        (b"serial_number\nA\n", "The first line names the columns"),
        (b"code,price\nA,1\n", "The first line names the columns"),
        (b"code\n", "contains no codes"),
        (b"code,pin_code\nA,1\nB\n", "line 3: 1 column instead of 2"),
        (b"code\nA,1\n", "line 2: 2 columns instead of 1"),
        (b"code,pin_code\n,1\n", "line 2: the code is empty"),
        (b"code,pin_code\n  ,1\n", "line 2: the code is empty"),
        (b"code,pin_code\n- -,1\n", "line 2: the code is empty"),
        (b"code\nA\nB\x00C\n", "line 3: code contains characters that cannot be printed"),
        (b'code\n"A\nB"\n', "line 3: code contains characters that cannot be printed"),
        (b"code,pin_code\nA," + b"1" * 501 + b"\n", "line 2: pin_code is longer than 500"),
        (b"code\nA\n" + b"B" * 20_000 + b"\nC\n", "line 3: longer than"),
        (b"code\nA\n\xff\n", "line 3: not UTF-8"),
        (b"\xff\xfec\x00o\x00d\x00e\x00", "contains no codes"),
        (b'code\n"A\n', "line 2: a quotation mark in this line or above it is not closed"),
        (b'code\n"A"B\n', "line 2: a quotation mark inside a value must be written twice"),
        (b"code\nA\rB\n", "line 2: a value with a line break needs quotation marks"),
    ],
)
def test_a_bad_file_is_refused_by_line(
    product: Product, file: Path, content: bytes, line: str
) -> None:
    file.write_bytes(content)

    assert line in refusal("import_codes", product.pk, file)

    assert own_shelf(product).available_stock == 0
    assert not ours(VoucherCode).exists()


def test_all_bad_lines_are_counted_and_the_first_are_named(product: Product, file: Path) -> None:
    file.write_text("code,pin_code\nGOOD,1\n" + "bad\n" * 25 + "GOOD2,2\n")

    line = refusal("import_codes", product.pk, file)

    assert line.startswith("line 3: 1 column instead")
    assert line.endswith("; and 5 more")
    assert line.count("line") == 20


@pytest.mark.parametrize(
    "words", [["4711"], ["{product}", "--variation", "4711"], ["0"], ["4711", "--check"]]
)
def test_an_unknown_shelf_is_refused(product: Product, file: Path, words: list[str]) -> None:
    file.write_text("code\nA\n")
    words = [word.format(product=product.pk) for word in words]

    assert "There is no" in refusal("import_codes", words[0], file, *words[1:])


def test_a_variation_of_another_product_is_refused(product: Product, file: Path) -> None:
    variation = make_variation(make_product())
    file.write_text("code\nA\n")

    assert "There is no" in refusal("import_codes", product.pk, file, "--variation", variation.pk)


def test_a_file_that_cannot_be_read_is_named(product: Product, tmp_path: Path) -> None:
    assert "No such file" in refusal("import_codes", product.pk, tmp_path / "none.csv")
    assert "Is a directory" in refusal("import_codes", product.pk, tmp_path)


# The rest rolls back for real, as the command does outside of a test.
commits = pytest.mark.django_db(transaction=True)


@commits
def test_repeats_are_named_by_line_and_never_shown(product: Product, file: Path) -> None:
    file.write_text("code,serial_number\nSECRET-1,a\nSECRET-2,b\n")
    run("import_codes", product.pk, file)
    make_merchant().buy(product_id=product.pk, quantity=1)
    file.write_text("code\nNEW\nSECRET-2\nOTHER\nNEW\nSECRET-1\nNEW\n")

    line = refusal("import_codes", make_product().pk, file)

    assert line == (
        f"the code of line 3 is already in stock, of {product.name}; line 5 repeats line 2;"
        f" the code of line 6 is already sold, of {product.name}; line 7 repeats line 2"
    )
    assert own_shelf(product).available_stock == 1
    assert ours(VoucherCode).count() == 2


@commits
def test_the_first_twenty_repeats_are_named_and_all_counted(product: Product, file: Path) -> None:
    file.write_text("code\n" + "A\n" * 40)

    line = refusal("import_codes", product.pk, file)

    assert line.startswith("line 3 repeats line 2; line 4 repeats line 2; ")
    assert line.endswith("line 22 repeats line 2; and 19 more")


@commits
def test_all_kinds_of_mistakes_are_named_at_once(product: Product, file: Path) -> None:
    file.write_text("code,pin_code\nSECRET,1\nbroken\nSECRET,2\n")

    assert refusal("import_codes", product.pk, file) == (
        "line 3: 1 column instead of 2; line 4 repeats line 2"
    )


NOT_CLOSED = "a quotation mark in this line or above it is not closed"
UNREADABLE_LINES = [
    (b"\xff", NOT_UTF_8),
    (b"A,\xed\xa0\x80", NOT_UTF_8),  # a lone surrogate
    (b"A\x00,1", "code contains characters that cannot be printed"),
    (b"B" * 1_000_000, "longer than 16,384 characters"),
    (b'"' + b"B" * 20_000 + b'",1', "longer than 16,384 characters"),
    (b'"A,1', NOT_CLOSED),
    (b'A,"1', NOT_CLOSED),
    (b'"A"B,1', "a quotation mark inside a value must be written twice"),
    (b"A\rB,1", "a value with a line break needs quotation marks around it"),
    (b"A,1,2", "3 columns instead of 2"),
]


@commits
@pytest.mark.parametrize(("wrong", "problem"), UNREADABLE_LINES, ids=lambda part: part[:12])
@pytest.mark.parametrize("quote", [b"", b'"'], ids=["plain", "quoted"])
def test_reading_goes_on_after_a_line_that_cannot_be_read(
    product: Product, file: Path, wrong: bytes, problem: str, quote: bytes
) -> None:
    row = quote + b"C" + quote + b"," + quote + b"2" + quote
    file.write_bytes(b"\n".join([b"code,pin_code", row, wrong, row, wrong, row]))

    assert refusal("import_codes", product.pk, file) == (
        f"line 3: {problem}; line 4 repeats line 2; line 5: {problem}; line 6 repeats line 2"
    )


@commits
def test_an_open_quotation_mark_at_the_end_hides_nothing(product: Product, file: Path) -> None:
    file.write_text('code\nA\n"B\n' + "A\n" * 20)

    line = refusal("import_codes", product.pk, file)

    assert line.startswith(f"line 3: {NOT_CLOSED}; line 4 repeats line 2; line 5 repeats line 2")
    assert line.endswith("; and 1 more")


@commits
def test_each_wrong_part_of_a_line_is_named_and_its_code_compared(
    product: Product, file: Path
) -> None:
    file.write_bytes(b"code,serial_number,pin_code\nA,\x01,\x02\nA,,%b\n,\x01,\n" % (b"1" * 501))

    assert refusal("import_codes", product.pk, file) == (
        "line 2: serial_number contains characters that cannot be printed;"
        " line 2: pin_code contains characters that cannot be printed;"
        " line 3: pin_code is longer than 500 characters; line 3 repeats line 2;"
        " line 4: serial_number contains characters that cannot be printed;"
        " line 4: the code is empty"
    )


def test_line_breaks_around_a_value_are_removed(product: Product, file: Path) -> None:
    file.write_text('code,pin_code\n"A\n","\n1\n"\nB,2\n')

    run("import_codes", product.pk, file)

    assert stock(product) == [{"code": "A", "pin_code": "1"}, {"code": "B", "pin_code": "2"}]


def test_a_hostile_text_is_read_in_bounded_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_cells, "MAX_ROW_LENGTH", 1000)
    monkeypatch.setattr(csv_cells, "MAX_READ_AGAIN", 10_000)
    lines = ['a",b,"\n'] * 100_000  # each opens a quotation mark, alone and inside another
    read = iter(lines)

    problems = list(csv_cells.read_rows(read, ","))

    assert not list(read)
    assert {problem for _, problem in problems} == {NOT_CLOSED}
    assert len(problems) < 10 + 10 * len(lines) / 1000
    assert problems[:2] == [(1, NOT_CLOSED), (2, NOT_CLOSED)]


@commits
@pytest.mark.parametrize("number", [1, 25, 10_002])
@pytest.mark.parametrize("check", [[], ["--check"]])
def test_all_problems_are_written_to_a_file(
    product: Product, file: Path, check: list[str], number: int
) -> None:
    file.write_text("code\n" + "A\n" * (number + 1))
    problems = file.with_name("problems.txt")

    refusal("import_codes", product.pk, file, "--problems", problems, *check)

    lines = problems.read_text().splitlines()
    assert lines[0] == "line 3 repeats line 2"
    assert len(lines) == min(number, 10_001)
    assert lines[-1] == ("and 2 more" if number > 10_000 else f"line {number + 2} repeats line 2")


def test_problems_that_cannot_be_written_are_still_named(product: Product, file: Path) -> None:
    file.write_text("code\nA,1\n")

    for taken in (file.parent, file):
        line = refusal("import_codes", product.pk, file, "--problems", taken)

        assert line.startswith("line 2: 2 columns instead of 1")
        assert line.endswith("File exists.")
    assert file.read_text() == "code\nA,1\n"


def test_a_right_file_leaves_no_file_of_problems(product: Product, file: Path) -> None:
    file.write_text("code\nA\n")
    problems = file.with_name("problems.txt")

    run("import_codes", product.pk, file, "--problems", problems)

    assert not problems.exists()


CHANGED_BY_SPREADSHEETS = [
    (["1.23457E+15", "ABC-1"], "has 1 rounded number like 1.23457E+15, the first in line 2."),
    (["1,23457e+15"], "has 1 rounded number"),
    ([f"12345678901{n}0" for n in range(1000, 1010)], "has 10 long numbers that all end with 0"),
    (
        ["123", *(f"{n}" for n in range(1000, 1009))],
        "seems to have lost leading zeros: 1 of 10 numbers are shorter than 4 digits, the first in"
        " line 2.",
    ),
]
RIGHT_AS_THEY_ARE = [
    ["12E5", "1E5", "1234E+5", "A1.0"],
    [f"12345678901{n}" for n in range(1000, 1020)],
    [f"0{n}" for n in range(990, 1010)],
    [f"{n}" for n in range(995, 1003)],
    [f"{n}" for n in range(1, 10)] + ["X"],
]


@commits
@pytest.mark.parametrize(("numbers", "doubt"), CHANGED_BY_SPREADSHEETS)
@pytest.mark.parametrize("column", ["code", "serial_number", "pin_code"])
def test_numbers_that_a_spreadsheet_changed_are_refused_unless_confirmed(
    product: Product, file: Path, column: str, numbers: list[str], doubt: str
) -> None:
    other = "pin_code" if column == "code" else "code"
    header = f"{column};{other}"
    rows = [f"{number};UNIQUE-{place}" for place, number in enumerate(numbers)]
    file.write_text("\n".join([header, *rows]))

    assert f"The column {column} {doubt}" in refusal("import_codes", product.pk, file)
    assert own_shelf(product).available_stock == 0

    run_confirmed("import_codes", product.pk, file)
    assert own_shelf(product).available_stock == len(numbers)


@commits
@pytest.mark.parametrize("numbers", RIGHT_AS_THEY_ARE)
def test_other_numbers_are_no_reason_to_ask(
    product: Product, file: Path, numbers: list[str]
) -> None:
    file.write_text("\n".join(["code", *numbers]))

    assert run("import_codes", product.pk, file)["imported"] == len(numbers)


@commits
def test_the_same_file_twice_changes_nothing(product: Product, file: Path) -> None:
    file.write_text("code\nA\nB\n")
    run("import_codes", product.pk, file)

    refusal("import_codes", product.pk, file)

    assert own_shelf(product).available_stock == 2
    assert reconcile()["findings"] == []


@commits
def test_a_code_refused_in_one_case_is_another_code_in_the_other(
    product: Product, file: Path
) -> None:
    file.write_text("code\nabc\nABC\n")

    assert run("import_codes", product.pk, file)["imported"] == 2


SAME_CODE = [
    "ABCD-1234",
    "ABCD\N{EN DASH}1234",
    "ABCD\N{NON-BREAKING HYPHEN}1234",
    "ABCD\N{MINUS SIGN}1234",
    "ABCD\N{FULLWIDTH HYPHEN-MINUS}1234",
    "ABCD1234",
    "ABCD 1234",
    "AB CD - 12 34",
    "A-B-C-D-1-2-3-4",
    "\N{FULLWIDTH LATIN CAPITAL LETTER A}BCD-1234",
]


@commits
@pytest.mark.parametrize("first", [SAME_CODE[0], SAME_CODE[5]])
@pytest.mark.parametrize("second", SAME_CODE)
def test_other_dashes_and_spaces_make_no_other_code(
    product: Product, file: Path, first: str, second: str
) -> None:
    file.write_text(f"code\n{first}\n", encoding="utf-8")
    run("import_codes", product.pk, file)
    file.write_text(f"code\nNEW\n{second}\nNEW-2\nNE W 2\n", encoding="utf-8")

    assert refusal("import_codes", make_product().pk, file) == (
        f"the code of line 3 is already in stock, of {product.name}; line 5 repeats line 4"
    )
    assert stock(product) == [{"code": first}]


def test_every_unicode_dash_and_space_is_ignored() -> None:
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        if unicodedata.category(character) == "Pd" or character.isspace():
            assert normal_form(f"a{character}b") == "ab", hex(point)


def test_letters_digits_and_other_signs_are_kept() -> None:
    assert normal_form("aA0_./#+*Ж") == "aA0_./#+*Ж"


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_codes_need_no_table_of_separators(code: str) -> None:
    plain = SEPARATORS.sub("", unicodedata.normalize("NFKC", code))
    assert normal_form(code) == without_marks(plain)


def patiently(look: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def importing_slowly(product: Product, fifo: Path) -> Iterator[Future[Any]]:
    """An import that waits in the middle of its 5,000 lines until the block ends."""
    os.mkfifo(fifo)
    with (
        in_background(
            lambda: import_codes(product_id=product.pk, path=fifo, imported_by="test")
        ) as importing,
        fifo.open("w") as writer,
    ):
        writer.write("code\n" + "".join(f"NEW-{number}\n" for number in range(5000)))
        writer.flush()
        patiently(lambda: scalar("SELECT max(tuples_processed) FROM pg_stat_progress_copy"))
        yield importing


@commits
def test_sales_of_the_shelf_go_on_during_an_import(file: Path) -> None:
    product = make_product(codes=1)

    with importing_slowly(product, file) as importing:
        merchant = make_merchant()
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
        sold_out = merchant.buy(product_id=product.pk, quantity=1).json()
        assert sold_out["error"]["reason"] == "insufficient_stock"

    assert importing.result().number == 5000
    assert own_shelf(product).available_stock == 5000
    assert reconcile()["findings"] == []


@commits
def test_one_import_at_a_time(product: Product, file: Path) -> None:
    file.write_text("code\nA\n")

    with importing_slowly(product, file.with_suffix(".fifo")):
        assert "Another import" in refusal("import_codes", product.pk, file)

    assert run("import_codes", product.pk, file)["available_stock"] == 5001


@commits
def test_a_file_that_breaks_off_leaves_nothing(product: Product, file: Path) -> None:
    file.write_text("code\n" + "".join(f"NEW-{number}\n" for number in range(5000)) + "\x00\n")

    assert "line 5002" in refusal("import_codes", product.pk, file)

    assert not ours(VoucherCode).exists()
    file.write_text(file.read_text().replace("\x00\n", ""))
    assert run("import_codes", product.pk, file)["imported"] == 5000


@commits
def test_nothing_about_a_code_reaches_stderr(product: Product, file: Path) -> None:
    file.write_text("code\nSECRET\nSECRET\n")
    err = io.StringIO()

    with pytest.raises(CommandError) as refused:
        call_command("import_codes", product.pk, file, stderr=err)

    assert "SECRET" not in err.getvalue() + str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_stored_codes_and_digests_hold_no_clear_text(product: Product, file: Path) -> None:
    file.write_text("code,serial_number,pin_code\nSECRETCODE,SECRETSERIAL,SECRETPIN\n")
    run("import_codes", product.pk, file)

    row = ours(VoucherCode).get()
    assert b"SECRET" not in bytes(row.sealed)
    assert len(bytes(row.digest)) == 32


part = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=30).filter(
    lambda text: (
        plain_text(text) == text
        and not first_invisible(text, spaces=True)
        and not ERROR_WORDS.fullmatch(text)
    )
)


class AnyFile(TestCase):
    @given(
        rows=st.lists(
            st.tuples(part.filter(normal_form), part, part),
            min_size=1,
            max_size=20,
            unique_by=lambda row: normal_form(row[0]),
        ),
        quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    )
    def test_what_goes_in_comes_out(self, rows: list[tuple[str, ...]], quoting: Any) -> None:
        out = io.StringIO()
        writer = csv.writer(out, quoting=quoting)
        writer.writerows([("code", "serial_number", "pin_code"), *rows])
        product = make_product()
        with NamedTemporaryFile() as file:
            file.write(out.getvalue().encode())
            file.flush()
            run_confirmed("import_codes", product.pk, file.name)

        names = ("code", "serial_number", "pin_code")
        assert stock(product) == [
            {name: part for name, part in zip(names, row, strict=True) if part} for row in rows
        ]
