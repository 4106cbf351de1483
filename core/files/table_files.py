"""Tables as files that people open in a spreadsheet. They are written in parts, so memory does not
limit their size.

CSV is also for programs: it is the same in every language. A workbook is for people, unless it is
imported again: its headings and choices are in the language of its reader, and its amounts and
times have number formats, so a spreadsheet can add and sort them.

No cell is ever a formula. In CSV, a text that a spreadsheet could take for one starts with an
apostrophe (core/files/csv_cells.py). In XLSX, a text is stored as a text.
"""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import RawIOBase
from itertools import count, islice, zip_longest
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from django.db.models.enums import Choices
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext

from core.files.csv_cells import EXACT_DIGITS, Echo, harmless
from core.json_output import money_text

CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
# The names of columns and sheets that no page shows, so that `make texts` finds them. Other files
# of the back office have the headings of their list.
HEADINGS = (
    *("account", "account_id", "adjustments", "amount", "announced", "balance_after"),
    *("bank_reference", "booking_reference", "by", "case", "client", "closed_at", "closing"),
    *("code", "codes", "codes_in_a_unit", "codes_in_stock", "cost", "created_at", "credits"),
    *("currency", "day", "deposits", "email", "failure_reason", "fields", "for_the_merchant", "id"),
    *("idempotency_key", "kind", "last_sign_in", "limit_per_minute", "live_keys", "margin"),
    *("merchant_reference", "method", "milliseconds", "name", "net_sales", "networks"),
    *("note", "opened_at", "opening", "order", "order_reference", "path", "payouts"),
    *("player_id", "price", "product", "product_id", "purchases", "quantity", "reason"),
    *("reference", "refunded", "refunds", "refunds_and_credits", "request_id", "requests_today"),
    *("role", "sales", "since", "sold", "sold_without_known_cost", "state", "status"),
    *("stock_value", "time", "total_price", "unit_price", "units", "valid_until", "variation"),
    *("variation_id", "Clients", "Transfers"),
)
BOM = "\ufeff"
LINES_AT_ONCE = 200
# A spreadsheet opens 1,048,576 rows of a sheet. A ZIP file without 64-bit sizes holds 2 GiB of one.
ROWS_OF_A_SHEET = 1_000_000
BYTES_OF_A_SHEET = 2_000_000_000
MAX_NAME = 28  # characters of a sheet, without the number of a further one
NOT_IN_A_NAME = re.compile(r"[\[\]:*?/\\']")
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
    "<cols>{}</cols><sheetData>"
)
WIDEST = 42  # characters
LETTERS = 26  # columns A to Z
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001  # spreadsheets count the days since then
AMOUNT = "#,##0.00########"
DAY = "yyyy\\-mm\\-dd"
SHEET_ENDS = "</sheetData>{}</worksheet>"
PLAIN, HEADING = 0, 1  # the first styles of STYLES; each number format has one after them
STYLES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts>{{}}</numFmts>'
    '<fonts><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    "<borders><border><left/><right/><top/><bottom/><diagonal/></border></borders>"
    '<cellStyleXfs><xf/></cellStyleXfs><cellXfs><xf/><xf fontId="1" applyFont="1"/>{}</cellXfs>'
    '<cellStyles><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


def write_table(
    format: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    mark: bool = True,
    is_imported: bool = False,
    above: Sequence[Sequence[Any]] = (),
    title: str = "",
) -> Generator[bytes]:
    """Yields the file in parts. `format` is `csv` or `xlsx`. A workbook that `is_imported` again is
    the same in every language. The rows `above` describe the table on a sheet of their own; CSV has
    none. The `title` of the list is the name of its sheet.

    With `mark`, a CSV file begins with the mark by which spreadsheets recognise UTF-8. Files that
    programs read have none.
    """
    if format == "xlsx":
        headings = columns if is_imported else [*map(_heading, columns)]
        name = NOT_IN_A_NAME.sub(" ", title)[:MAX_NAME]
        yield from _write_xlsx(headings, rows, above, _Cells(is_plain=is_imported), name)
        return
    writer = csv.writer(Echo())
    yield f"{BOM if mark else ''}{writer.writerow(columns)}".encode()
    for some in _in_parts(rows):
        yield "".join(writer.writerow(map(_csv_cell, row)) for row in some).encode()


def _heading(column: str) -> str:
    """The name of a column for people: `product_id` is Product ID."""
    words = gettext(column)
    if words != column or column not in HEADINGS:
        return capfirst(words)
    return re.sub(r"\b[Ii]d\b", "ID", capfirst(column.replace("_", " ")))


def _in_parts(rows: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    remaining = iter(rows)
    return iter(lambda: [*islice(remaining, LINES_AT_ONCE)], [])


class TimeText(str):
    """A time as text for programs. A workbook shows `moment`, in its own time zone."""

    moment: datetime


class Word(str):
    """A word for programs, marked for translation. A workbook shows it in the reader's language."""


def exact_time(moment: datetime) -> TimeText:
    """The time with microseconds, as in the API and in older files."""
    text = TimeText(moment.isoformat().replace("+00:00", "Z"))
    text.moment = moment
    return text


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


class _Cells:
    """Writes the cells of a workbook, and collects the number formats that they use.

    `is_plain`: cells without formats, which are imported as they were exported.
    """

    def __init__(self, *, is_plain: bool) -> None:
        self._is_plain = is_plain
        self._formats = [AMOUNT]

    def row(self, row: Sequence[Any], *, style: int = PLAIN) -> str:
        return f"<row>{''.join(self._cell(value, style) for value in row)}</row>"

    def styles(self) -> str:
        """The part of the package with the styles."""
        formats = [*enumerate(self._formats, 164)]  # smaller numbers are built in
        return STYLES.format(
            "".join(f'<numFmt numFmtId="{id}" formatCode="{code}"/>' for id, code in formats),
            "".join(f'<xf numFmtId="{id}" applyNumberFormat="1"/>' for id, _ in formats),
        )

    def filter(self, columns: int, rows: int) -> str:
        """A filter on the headings."""
        if self._is_plain or not columns:
            return ""
        first, last = divmod(columns - 1, LETTERS)
        letters = (chr(ord("A") + first - 1) if first else "") + chr(ord("A") + last)
        return f'<autoFilter ref="A1:{letters}{rows}"/>'

    def _cell(self, value: Any, style: int) -> str:
        if not self._is_plain:
            value = _for_people(value)
        elif not _is_number(value):
            value = _text(value)
        text = _text(value)
        if not text:
            return "<c/>"
        if isinstance(value, date) and value.year > FIRST_DAY.year + 1:
            return self._day_cell(value)
        if _is_number(value) and sum(map(str.isdigit, text)) <= EXACT_DIGITS:
            if isinstance(value, Decimal):
                style = self._style_of(AMOUNT)
            return f'<c s="{style}"><v>{text}</v></c>'
        text = NOT_IN_XML.sub("\ufffd", text[:MAX_CELL])
        if "_x" in text:
            text = LIKE_ESCAPE.sub("_x005F_", text)
        text = escape(text).replace("\r", "_x000D_")  # readers of XML take it for a line feed
        return f'<c s="{style}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'

    def _day_cell(self, value: date) -> str:
        """A day or a time as a number of days. The format of a time names its zone. Times have
        whole seconds, as on pages: spreadsheets would round the others, even to the next day."""
        code, clock = DAY, datetime.combine(value, time())
        if isinstance(value, datetime):
            zone = value.isoformat()[-6:].replace("+00:00", "UTC")
            code = f"{DAY}\\ hh:mm:ss&quot; {zone}&quot;"
            clock = value.replace(microsecond=0, tzinfo=None)
        days = (clock - FIRST_DAY) / timedelta(days=1)
        return f'<c s="{self._style_of(code)}"><v>{days}</v></c>'

    def _style_of(self, code: str) -> int:
        if self._is_plain:
            return PLAIN
        if code not in self._formats:
            self._formats.append(code)
        return HEADING + 1 + self._formats.index(code)


def _for_people(value: Any) -> Any:
    """The value in the language and the time zone of the reader."""
    match value:
        case TimeText():
            return value.moment
        case datetime():
            try:
                return localtime(value)
            except OverflowError:  # at the end of the calendar
                return value
        case Choices():
            return str(value.label)
        case Word():
            return capfirst(gettext(value))
        case bool():
            return gettext("yes") if value else gettext("no")
    return value


def _columns(rows: Sequence[Sequence[Any]]) -> str:
    """Columns as wide as the texts of these rows, up to WIDEST."""
    widths = [
        min(max(len(_text(value)) for value in column) + 3, WIDEST)
        for column in zip_longest(*rows, fillvalue="")
    ]
    return "".join(
        f'<col min="{number}" max="{number}" width="{width}" customWidth="1"/>'
        for number, width in enumerate(widths, 1)
    )


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
    headings: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    above: Sequence[Sequence[Any]],
    cells: _Cells,
    title: str,
) -> Generator[bytes]:
    pipe, names = _Pipe(), [gettext("Summary")] if above else []
    parts = _in_parts(rows)
    some = next(parts, None)
    begin = SHEET_BEGINS.format(FROZEN_HEADINGS, _columns([headings, *(some or ())]))
    begin += cells.row(headings, style=HEADING)
    with ZipFile(pipe, "w", ZIP_DEFLATED, compresslevel=1) as book:
        if above:
            summary = SHEET_BEGINS.format(FROZEN_HEADINGS, _columns(above))
            summary += cells.row(
                [gettext("Part"), gettext("Name"), gettext("Value")], style=HEADING
            )
            summary += "".join(map(cells.row, above)) + SHEET_ENDS.format("")
            book.writestr("xl/worksheets/sheet1.xml", summary)
        for number in count(1):
            name = gettext("Entries") if above else title
            further = f" {number}" if number > 1 else ""
            names.append(f"{name}{further}" if name else f"Sheet{number}")
            with book.open(f"xl/worksheets/sheet{len(names)}.xml", "w") as sheet:
                size = sheet.write(begin.encode())
                length = 1
                while some and length < ROWS_OF_A_SHEET and size < BYTES_OF_A_SHEET:
                    size += sheet.write("".join(map(cells.row, some)).encode())
                    length += len(some)
                    some = next(parts, None)
                    if taken := pipe.take():
                        yield taken
                sheet.write(SHEET_ENDS.format(cells.filter(len(headings), length)).encode())
            if not some:
                break
        for name, text in _frame_of_book(names, cells.styles()).items():
            book.writestr(name, XML + text)
    yield pipe.take()


def _frame_of_book(names: Sequence[str], styles: str) -> dict[str, str]:
    """The files of the package besides its sheets."""
    numbers = range(1, len(names) + 1)
    return {
        "xl/styles.xml": styles,
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{SHEET}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{SHEET}.styles+xml"/>'
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
            f'<sheet name="{escape(name)}" sheetId="{number}" r:id="rId{number}"/>'
            for number, name in enumerate(names, 1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        + "".join(
            f'<Relationship Id="rId{number}" Type="{OFFICE}/worksheet"'
            f' Target="worksheets/sheet{number}.xml"/>'
            for number in numbers
        )
        + f'<Relationship Id="rId{len(names) + 1}" Type="{OFFICE}/styles" Target="styles.xml"/>'
        + "</Relationships>",
    }
