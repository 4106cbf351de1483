"""Tables as files: no cell is a formula, and their size is not limited by memory."""

import csv
import io
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from time import process_time
from typing import Any
from zipfile import ZipFile

import openpyxl
import pytest
from django.utils import timezone, translation
from openpyxl.utils.escape import unescape

from accounts.preferences.time_zones import local_text
from core.files import table_files
from core.files.table_files import write_table
from core.files.tables import Columns, read_bytes
from orders.models import OrderStatus

COLUMNS = ("name", "amount")
HEADINGS = ("Name", "Amount")


def file_of(format: str, rows: Any, **options: Any) -> bytes:
    return b"".join(write_table(format, COLUMNS, rows, **options))


def sheets_of(data: bytes) -> list[list[tuple[Any, ...]]]:
    book = openpyxl.load_workbook(io.BytesIO(data))
    return [list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_text_is_a_formula(text: str) -> None:
    (_, line) = csv.reader(io.StringIO(file_of("csv", [(text, 1)]).decode("utf-8-sig"), newline=""))
    assert line[0] == f"'{text}"

    data = file_of("xlsx", [(text, 1)])
    cell = openpyxl.load_workbook(io.BytesIO(data)).worksheets[0]["A2"]
    assert cell.data_type == "s"
    assert unescape(cell.value) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("x;=1+1;y", "x;'=1+1;y"),
        ("x\n=1+1;y", "x\n'=1+1;y"),
        ("x\r\n-1", "x\r\n'-1"),
        ("x\t@SUM(A1)", "x\t'@SUM(A1)"),
        ('x;"=1+1;y', "x;\"'=1+1;y"),
        ("x; +1", "x; '+1"),
        (";=1+1", ";'=1+1"),
        ("a=b;c-d, e", "a=b;c-d, e"),
    ],
)
def test_no_part_of_a_text_is_a_formula_where_a_semicolon_begins_a_cell(
    text: str, written: str
) -> None:
    (_, line) = csv.reader(io.StringIO(file_of("csv", [(text, 1)]).decode("utf-8-sig"), newline=""))
    assert line[0] == written


def test_a_text_of_line_breaks_is_written_in_time_that_grows_with_its_length() -> None:
    begin = process_time()
    file_of("csv", [("\n" * 40_000, 1)])
    assert process_time() - begin < 2  # one that grows with the square: 10 seconds


def test_numbers_stay_numbers() -> None:
    rows = [("a", Decimal("-12.3400")), ("b", 3), ("c", Decimal("1234567890123456.7891"))]

    assert file_of("csv", rows, mark=False).decode().splitlines() == [
        "name,amount",
        "a,-12.34",
        "b,3",
        "c,1234567890123456.7891",
    ]
    assert sheets_of(file_of("xlsx", rows)) == [
        [HEADINGS, ("a", -12.34), ("b", 3), ("c", "1234567890123456.7891")]
    ]


def test_times_and_days_are_dates_of_a_spreadsheet_and_words_in_csv() -> None:
    moment = datetime(2026, 7, 2, 3, 4, 5, tzinfo=UTC)
    with timezone.override("Europe/Berlin"), translation.override("de"):
        rows = [(moment, True), (local_text(moment), OrderStatus.FAILED), (date(2026, 1, 2), None)]
        book = openpyxl.load_workbook(io.BytesIO(file_of("xlsx", rows)))
        lines = file_of("csv", rows, mark=False).decode().splitlines()

    sheet = book.worksheets[0]
    local, day = datetime.fromisoformat("2026-07-02T05:04:05"), datetime.fromisoformat("2026-01-02")
    assert [*sheet.iter_rows(min_row=2, values_only=True)] == [
        (local, "ja"),
        (local, "Fehlgeschlagen"),
        (day, None),
    ]
    assert sheet["A2"].number_format == 'yyyy\\-mm\\-dd\\ hh:mm:ss" +02:00"'
    assert sheet["A4"].number_format == r"yyyy\-mm\-dd"
    assert lines[1:] == [
        "2026-07-02T03:04:05Z,yes",
        "2026-07-02T05:04:05+02:00,failed",
        "2026-01-02,",
    ]


def test_a_spreadsheet_shows_the_second_of_a_time() -> None:
    moment = datetime(2026, 7, 2, 3, 4, 5, tzinfo=UTC)
    sheet = ZipFile(io.BytesIO(file_of("xlsx", [(moment, 1)]))).read("xl/worksheets/sheet1.xml")
    days = float(re.findall(rb"<v>(\d+\.\d+)</v>", sheet)[0])
    seconds = days % 1 * 86_400
    # LibreOffice leaves out parts of a second.
    assert seconds == pytest.approx(3 * 3600 + 4 * 60 + 5, abs=0.000_005)


def test_a_time_has_its_second_as_on_pages() -> None:
    midnight = datetime(2026, 11, 1, tzinfo=UTC)
    moments = [midnight + timedelta(seconds=n * 1361 + 0.7) for n in range(-30, 30)]

    rows = sheets_of(file_of("xlsx", [(moment, 1) for moment in moments]))[0][1:]

    expected = [moment.replace(microsecond=0, tzinfo=None) for moment in moments]
    assert [cell for cell, _ in rows] == expected


def test_the_last_time_of_the_calendar_has_a_cell() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
    with timezone.override("Europe/Berlin"):
        rows = sheets_of(file_of("xlsx", [(last, 1)]))[0][1:]
    assert rows == [(last.replace(microsecond=0, tzinfo=None), 1)]


def test_amounts_have_a_format_that_shows_all_decimals_and_headings_stay() -> None:
    rows = [("a", Decimal("1250.5")), ("b", Decimal("-0.0725")), ("a longer name", 3)]
    above = [("Summary", "Opening balance", Decimal("7.10"))]
    book = openpyxl.load_workbook(io.BytesIO(file_of("xlsx", rows, above=above)))
    summary, entries = book.worksheets

    assert (book.sheetnames, summary["C2"].value) == (["Summary", "Entries"], 7.1)
    assert [cell.value for cell in summary[1]] == ["Part", "Name", "Value"]
    assert (summary["A1"].font.bold, summary["A2"].font.bold) == (True, False)
    for cell in (summary["C2"], entries["B2"], entries["B3"]):
        assert cell.number_format == "#,##0.00########"
    assert entries["B4"].number_format == "General"
    assert (entries.freeze_panes, entries["A1"].font.bold) == ("A2", True)
    assert entries.column_dimensions["A"].width > entries.column_dimensions["B"].width


def test_a_sheet_has_the_name_of_its_list_and_a_filter() -> None:
    data = file_of("xlsx", [("a", 1), ("b", 2)], title="Bought / sold: all of the orders of a year")
    sheet = openpyxl.load_workbook(io.BytesIO(data)).worksheets[0]
    assert sheet.title == "Bought   sold  all of the or"
    assert sheet.auto_filter.ref == "A1:B3"
    data = b"".join(write_table("xlsx", [f"c{number}" for number in range(28)], []))
    sheet = openpyxl.load_workbook(io.BytesIO(data)).worksheets[0]
    assert (sheet.title, sheet.auto_filter.ref) == ("Sheet1", "A1:AB1")


def test_a_file_that_is_imported_again_has_no_formats() -> None:
    rows = [(date(2026, 1, 2), Decimal("1.5"))]
    book = openpyxl.load_workbook(io.BytesIO(file_of("xlsx", rows, is_imported=True)))
    cells = book.worksheets[0][2]
    assert [(cell.value, cell.number_format) for cell in cells] == [
        ("2026-01-02", "General"),
        (1.5, "General"),
    ]


def test_a_text_that_xml_forbids_is_written() -> None:
    text = "a\x00\ud800<b>&\U0001f600"

    assert sheets_of(file_of("xlsx", [(text, 1)]))[0][1][0] == "a\ufffd\ufffd<b>&\U0001f600"


@pytest.mark.parametrize(
    "text",
    [
        *("_x0041_", "_x0041_x0042_", "__x000d_", "_x005F_x0041_", "_x005F_", "_x004_", "a_xb"),
        *("a\rb", "a\r\nb", "_x000D_\rb"),
    ],
)
def test_an_escape_and_what_looks_like_one_arrive_as_they_are(text: str) -> None:
    table = read_bytes(file_of("xlsx", [(text, 1)]), Columns(known=COLUMNS, required=COLUMNS))

    assert [row.cells for row in table.rows] == [[text, "1"]]


def test_more_rows_than_a_sheet_holds_go_into_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROWS_OF_A_SHEET", 401)

    sheets = sheets_of(file_of("xlsx", ((str(number), number) for number in range(1000))))

    assert [len(sheet) for sheet in sheets] == [401, 401, 201]
    assert all(sheet[0] == HEADINGS for sheet in sheets)
    assert [row[1] for sheet in sheets for row in sheet[1:]] == list(range(1000))


def test_an_empty_table_has_its_columns() -> None:
    assert sheets_of(file_of("xlsx", [])) == [[HEADINGS]]


def test_parts_come_before_the_last_row_is_read() -> None:
    read = 0

    def rows() -> Any:
        nonlocal read
        for number in range(100_000):
            read += 1
            yield (f"row {number} " * 5, number)

    for format in ("csv", "xlsx"):
        read = 0
        parts = write_table(format, COLUMNS, rows())
        largest = max(len(next(parts)) for _ in range(3))
        assert read < 20_000
        assert largest < 200_000


def test_a_stream_of_xlsx_has_no_zip_errors() -> None:
    data = file_of("xlsx", ((str(number), number) for number in range(500)))

    assert ZipFile(io.BytesIO(data)).testzip() is None


def test_headings_are_words_and_those_of_an_imported_file_stay() -> None:
    columns = ("product_id", "balance_after", "id", "Sold by")
    for is_imported, headings in (
        (False, ("Product ID", "Balance after", "ID", "Sold by")),
        (True, columns),
    ):
        data = b"".join(write_table("xlsx", columns, [], is_imported=is_imported))
        assert sheets_of(data) == [[headings]]
