"""Tables as files that people open in a spreadsheet. They are written in parts, so memory does not
limit their size.

CSV is also for programs: its headings are the same for everybody. The headings of a workbook are in
the language of its reader, unless the file is imported again.

No cell is ever a formula. In CSV, a text that a spreadsheet could take for one starts with an
apostrophe (core/files/csv_cells.py). In XLSX, a text is stored as a text.
"""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from io import RawIOBase
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from django.utils.translation import gettext

from core.files.csv_cells import EXACT_DIGITS, Echo, harmless
from core.json_output import money_text

CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
# The names of columns that no page shows, so that `make texts` finds them. Other files of the back
# office have the headings of their list.
HEADINGS = (
    *("account", "account_id", "adjustments", "amount", "announced", "balance_after"),
    *("bank_reference", "booking_reference", "by", "case", "client", "closed_at", "closing"),
    *("code", "codes", "codes_in_a_unit", "codes_in_stock", "cost", "created_at", "credits"),
    *("currency", "day", "deposits", "email", "failure_reason", "for_the_merchant", "id"),
    *("idempotency_key", "kind", "last_sign_in", "limit_per_minute", "live_keys", "margin"),
    *("merchant_reference", "method", "milliseconds", "name", "net_sales", "networks"),
    *("note", "opened_at", "opening", "order", "order_reference", "path", "payouts"),
    *("player_id", "price", "product", "product_id", "purchases", "quantity", "reason"),
    *("reference", "refunded", "refunds", "refunds_and_credits", "request_id", "requests_today"),
    *("role", "sales", "since", "sold", "sold_without_known_cost", "state", "status"),
    *("stock_value", "time", "total_price", "unit_price", "units", "valid_until", "variation"),
    "variation_id",
)
BOM = "\ufeff"
LINES_AT_ONCE = 200
# A spreadsheet opens 1,048,576 rows of a sheet. A ZIP file without 64-bit sizes holds 2 GiB of one.
ROWS_OF_A_SHEET = 1_000_000
BYTES_OF_A_SHEET = 2_000_000_000
MAX_CELL = 32_767  # characters
# Readers take _x0041_ for the character with this number.
LIKE_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
FROZEN_HEADINGS = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
SHEET_BEGINS = (
    f'{XML}<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0">{{}}'
    '</sheetView></sheetViews><sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/>'
    "<sheetData>"
)
SHEET_ENDS = "</sheetData></worksheet>"


def write_table(
    format: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    mark: bool = True,
    is_imported: bool = False,
    above: Sequence[Sequence[Any]] = (),
) -> Generator[bytes]:
    """Yields the file in parts. `format` is `csv` or `xlsx`. The headings of a file that
    `is_imported` again are the same for everybody. The rows `above` say what the table is about; a
    blank row follows them.

    With `mark`, a CSV file begins with the mark by which spreadsheets recognise UTF-8. Files that
    programs read have none.
    """
    above = [*above, ()] if above else []
    if format == "xlsx":
        headings = columns if is_imported else [*map(gettext, columns)]
        yield from _write_xlsx([*above, headings], rows)
        return
    writer = csv.writer(Echo())
    heading = "".join(writer.writerow(map(_csv_cell, row)) for row in above)
    yield f"{BOM if mark else ''}{heading}{writer.writerow(columns)}".encode()
    for some in _in_parts(rows):
        yield "".join(writer.writerow(map(_csv_cell, row)) for row in some).encode()


def _in_parts(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    some: list[Sequence[Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == LINES_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


def exact_time(moment: datetime) -> str:
    """The time with microseconds, as in the API and in older files."""
    return moment.isoformat().replace("+00:00", "Z")


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.isoformat(timespec="seconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return money_text(value)
    return str(value)


def _csv_cell(value: Any) -> str:
    text = _text(value)
    return text if _is_number(value) else harmless(text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _xlsx_cell(value: Any) -> str:
    text = _text(value)
    if not text:
        return "<c/>"
    if _is_number(value) and sum(map(str.isdigit, text)) <= EXACT_DIGITS:
        return f"<c><v>{text}</v></c>"
    text = NOT_IN_XML.sub("\ufffd", text[:MAX_CELL])
    if "_x" in text:
        text = LIKE_ESCAPE.sub("_x005F_", text)
    text = escape(text).replace("\r", "_x000D_")  # readers of XML take it for a line feed
    return f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _xlsx_row(row: Sequence[Any]) -> str:
    return f"<row>{''.join(map(_xlsx_cell, row))}</row>"


class _Pipe(RawIOBase):
    """A buffer of what was written and not taken yet. ZipFile cannot seek in it, so it appends."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def _write_xlsx(
    headings: Sequence[Sequence[Any]], rows: Iterable[Sequence[Any]]
) -> Generator[bytes]:
    pipe, sheets = _Pipe(), 0
    begin = SHEET_BEGINS.format(FROZEN_HEADINGS if len(headings) == 1 else "")
    begin += "".join(map(_xlsx_row, headings))
    parts = _in_parts(rows)
    some = next(parts, None)
    with ZipFile(pipe, "w", ZIP_DEFLATED, compresslevel=1) as book:
        while some is not None or not sheets:
            sheets += 1
            with book.open(f"xl/worksheets/sheet{sheets}.xml", "w") as sheet:
                size = sheet.write(begin.encode())
                length = len(headings)
                while some and length < ROWS_OF_A_SHEET and size < BYTES_OF_A_SHEET:
                    size += sheet.write("".join(map(_xlsx_row, some)).encode())
                    length += len(some)
                    some = next(parts, None)
                    if taken := pipe.take():
                        yield taken
                sheet.write(SHEET_ENDS.encode())
        for name, text in _frame_of_book(sheets).items():
            book.writestr(name, XML + text)
    yield pipe.take()


def _frame_of_book(sheets: int) -> dict[str, str]:
    """The files of the package besides its sheets."""
    numbers = range(1, sheets + 1)
    return {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{SHEET}.sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{number}.xml"'
            f' ContentType="{SHEET}.worksheet+xml"/>'
            for number in numbers
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1"'
        f' Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(
            f'<sheet name="Sheet{number}" sheetId="{number}" r:id="rId{number}"/>'
            for number in numbers
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="rId{number}" Type="{OFFICE}/worksheet"'
            f' Target="worksheets/sheet{number}.xml"/>'
            for number in numbers
        )
        + "</Relationships>",
    }
