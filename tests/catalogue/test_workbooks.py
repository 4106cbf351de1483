"""Codes come from workbooks (XLSX) as text, in bounded memory; what a spreadsheet made of them is
noticed."""

import tracemalloc
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from openpyxl import Workbook, load_workbook

from catalogue.imports.code_file import COLUMNS
from catalogue.models import Product
from core.files import sheet_rows
from core.files.sheet_rows import MAX_COLUMNS
from core.files.tables import Columns, open_table
from core.files.workbook import MAX_BYTES
from core.files.workbook_sentences import HIDDEN_COLUMN, UNREADABLE
from core.files.xml_parts import MAX_FILES
from core.inputs import InputProblem
from merchants.api_access.references import COLUMNS_OF_TABLE as REFERENCES
from operators.imports.catalogue_table import COLUMNS_OF_TABLE as CATALOGUE
from operators.imports.pages import EMPTY_FILES
from tests.catalogue.test_importing_codes import stock
from tests.commands import refusal, run, run_confirmed
from tests.factories import make_product, own_shelf

commits = pytest.mark.django_db(transaction=True)  # the command commits


@pytest.fixture
def product(db: None) -> Product:
    return make_product()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "codes.xlsx"


def write(path: Path, rows: Sequence[Sequence[Any]], *, more: str = "") -> None:
    book = Workbook()
    sheet: Any = book.active
    for row in rows:
        sheet.append(row)
    if more:
        book.create_sheet()["B7"] = more
    book.save(path)


def rewrite(
    path: Path, change: Callable[[str, bytes], bytes], *, more: dict[str, bytes] | None = None
) -> None:
    """Writes the workbook again, with each file in its archive changed, and with more files."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()} | (more or {})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, change(name, content))


@commits
def test_texts_stay_as_they_are(product: Product, file: Path) -> None:
    rows: list[list[Any]] = [
        ["Pin Code", "CODE"],
        ["0012", "00123456789012345678"],
        [],
        [None, "1.23"],
        ["x", " É-1 "],
    ]
    write(file, rows)
    assert run("import_codes", product.pk, file)["imported"] == 3
    assert stock(product) == [
        {"code": "00123456789012345678", "pin_code": "0012"},
        {"code": "1.23"},
        {"code": "É-1", "pin_code": "x"},
    ]


@commits
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (123456789012345, "123456789012345"),
        (1.23457e15, "1234570000000000"),
        (7, "7"),
        (0.5, "0.5"),
    ],
)
def test_numbers_are_refused_unless_confirmed(
    product: Product, file: Path, number: float, text: str
) -> None:
    write(file, [["code"], ["A"], [number]])
    words = refusal("import_codes", product.pk, file)
    assert "The column code has 1 cell that the spreadsheet stores as numbers" in words
    assert "line 3" in words
    assert text not in words.partition("]")[2]
    assert not own_shelf(product).available_stock
    run_confirmed("import_codes", product.pk, file)
    assert stock(product)[1] == {"code": text}


@commits
@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([["code"], [date(2026, 1, 2)]], "line 2: column A has a date"),
        ([["code"], ["A", "B"]], "line 2: 2 columns instead of 1"),
        ([["code", "pin_code"], [None, "B"]], "line 2: the code is empty"),
        ([["code"], ["A"], ["B"], ["A"]], "line 4 repeats line 2"),
        ([["codes"], ["A"]], "The first line names the columns"),
        ([], "The first sheet that can be seen, Sheet, is empty"),
        ([["code"]], "The file contains no codes"),
    ],
)
def test_mistakes_are_named_by_line(
    product: Product, file: Path, rows: list[list[Any]], problem: str
) -> None:
    write(file, rows)
    assert problem in refusal("import_codes", product.pk, file)
    assert not own_shelf(product).available_stock


def test_an_error_of_the_spreadsheet_is_named() -> None:
    file = BytesIO()
    book = Workbook()
    sheet: Any = book.active
    sheet["A1"] = "#N/A"
    sheet["A1"].data_type = "e"
    book.save(file)
    file.seek(0)
    with pytest.raises(InputProblem, match="line 1: column A has an error"):
        open_table(file, COLUMNS)


@commits
def test_a_second_sheet_must_be_empty(product: Product, file: Path) -> None:
    write(file, [["code"], ["A"]], more="B")
    assert "The sheet Sheet1 has values, too, and is not read." in refusal(
        "import_codes", product.pk, file
    )
    write(file, [["code"], ["A"]])
    assert run("import_codes", product.pk, file)["imported"] == 1


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def _other_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", b"")


def _no_xml(path: Path) -> None:
    rewrite(path, lambda name, content: b"x" if "sheet1" in name else content)


def _far_row(path: Path) -> None:
    rewrite(path, lambda _, content: content.replace(b'<row r="2"', b'<row r="1001"'))


def _entities(path: Path) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e0 "0123456789">{levels}]><x>&e9;</x>'
    rewrite(path, lambda name, content: bomb.encode() if "sheet1" in name else content)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_cut, UNREADABLE),
        (_other_archive, "The file is a compressed archive"),
        (_no_xml, UNREADABLE),
        (_entities, UNREADABLE),
    ],
)
def test_a_broken_workbook_is_refused(
    product: Product, file: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    write(file, [["code"], ["A"]])
    spoil(file)
    tracemalloc.start()
    words = refusal("import_codes", product.pk, file)
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem in words
    assert memory < MAX_BYTES + 20_000_000  # the file's buffer, and little else


@pytest.mark.django_db
def test_a_row_beyond_the_last_is_refused(
    product: Product, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sheet_rows, "MAX_ROWS", 1000)
    write(file, [["code"], ["A"]])
    _far_row(file)
    assert "more than 1,000 rows" in refusal("import_codes", product.pk, file)


@pytest.mark.parametrize(
    "sizes",
    [[4 << 20] * ((COLUMNS.most.unpacked_bytes >> 22) + 1), [1] * (MAX_FILES + 1)],
    ids=["large", "many"],
)
def test_an_archive_that_unpacks_to_too_much_is_refused(sizes: list[int]) -> None:
    file = BytesIO()
    zeros = bytes(1 << 20)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, size in enumerate(sizes):
            with archive.open(str(number), "w") as part:
                for start in range(0, size, len(zeros)):
                    part.write(zeros[: size - start])
    assert len(file.getvalue()) < 2_000_000
    file.seek(0)
    with pytest.raises(InputProblem, match="too large when it is unpacked"):
        open_table(file, COLUMNS)


def test_the_empty_workbook_keeps_what_is_typed_as_text() -> None:
    found = finders.find(EMPTY_FILES["XLSX"])
    assert isinstance(found, str)
    sheet: Any = load_workbook(found).active
    assert [cell.value for cell in sheet[1]] == ["code", "serial_number", "pin_code"]
    assert {sheet.column_dimensions[name].number_format for name in "ABC"} == {"@"}


def accepts(file: Path, columns: Columns = COLUMNS) -> bool:
    """Whether the workbook is read and not refused as too large."""
    with file.open("rb") as stream:
        try:
            list(open_table(stream, columns).rows)
        except InputProblem as problem:
            assert "too large when it is unpacked" in str(problem)  # noqa: PT017
            return False
    return True


@pytest.mark.parametrize("part", ["xl/styles.xml", "xl/worksheets/sheet2.xml", "xl/workbook.xml"])
def test_the_elements_of_all_parts_are_counted_together(file: Path, part: str) -> None:
    columns = replace(COLUMNS, most=COLUMNS.most._replace(elements=21_000))
    write(file, [["code"], ["A"]], more=" ")
    assert accepts(file, columns)
    swell(file, part, 20_000)
    assert accepts(file, columns)
    write(file, [["code"], *[["A"]] * 500], more=" ")
    swell(file, part, 20_000)
    assert not accepts(file, columns)


def swell(file: Path, part: str, elements: int) -> None:
    """Adds empty elements to a part of the workbook."""

    def change(name: str, content: bytes) -> bytes:
        start, end, rest = content.rpartition(b"</")
        return start + b"<a/>" * elements + end + rest if name == part else content

    rewrite(file, change)


@pytest.mark.parametrize("columns", [REFERENCES, CATALOGUE], ids=["references", "catalogue"])
def test_each_kind_of_file_has_its_own_limits(file: Path, columns: Columns) -> None:
    """A file of codes may be larger than any other."""
    elements, size = columns.most
    assert (elements * 5, size * 3) < COLUMNS.most
    write(file, [columns.required, ["1"] * len(columns.required)])
    assert accepts(file, columns)
    swell(file, "xl/workbook.xml", elements)
    assert not accepts(file, columns)

    write(file, [columns.required, ["1"] * len(columns.required)])
    rewrite(file, lambda _name, content: content, more={"more": bytes(size)})
    assert not accepts(file, columns)


def test_a_column_is_hidden_once(file: Path) -> None:
    """A workbook of 2 MB, in which 400 sheets hid every column 16,000 times, took half an hour."""

    def hide(*ranges: tuple[int, int]) -> list[str]:
        cols = "".join(f'<col min="{min}" max="{max}" hidden="1"/>' for min, max in ranges)
        write(file, [["code"], ["A"]])
        rewrite(
            file,
            lambda _name, content: content.replace(
                b"<sheetData>", f"<cols>{cols}</cols><sheetData>".encode()
            ),
        )
        with file.open("rb") as stream:
            table = open_table(stream, COLUMNS)
            assert len(list(table.rows)) == 1
        return table.doubts.sentences()

    assert hide((1, 1), (2, MAX_COLUMNS)) == [HIDDEN_COLUMN % {"name": "A", "count": 2}]
    with pytest.raises(InputProblem, match="cannot be read"):
        hide((1, MAX_COLUMNS), (1, 1))


def test_reading_may_be_interrupted_in_every_part(file: Path) -> None:
    """An error of the reader's caller is not one of the file."""
    write(file, [["code"], ["A"]], more="B")
    calls = last = 0

    def advance(_size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            raise ZeroDivisionError

    with file.open("rb") as stream:
        list(open_table(stream, COLUMNS, advance=advance).rows)
    most = calls
    assert most > 5  # parts, and more
    for number in range(1, most + 1):
        calls, last = 0, number
        with file.open("rb") as stream, pytest.raises(ZeroDivisionError):
            list(open_table(stream, COLUMNS, advance=advance).rows)


def test_a_row_and_a_text_must_be_short(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet_rows, "MAX_ROW_LENGTH", 100)
    write(file, [["code"], ["A" * 90]])
    assert accepts(file)
    write(file, [["code"], ["A" * 110]])
    assert not accepts(file)
