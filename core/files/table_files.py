"""Tables as files that people open in a spreadsheet. They are written in parts, so memory does not
limit their size.

CSV is also for programs: it is the same for everybody. A workbook is for people, unless it is
imported again: headings and choices are in the language of its reader, and amounts and times have
number formats, so that a spreadsheet adds up and sorts them.

No cell is ever a formula. In CSV, a text that a spreadsheet could take for one starts with an
apostrophe (core/files/csv_cells.py). In XLSX, a text is stored as a text.
"""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import RawIOBase
from itertools import zip_longest
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

from django.db.models.enums import Choices
from django.utils.timezone import localtime
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
    "<cols>{}</cols><sheetData>"
)
WIDEST = 42  # characters
FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001  # spreadsheets count the days since then
AMOUNT = "#,##0.00########"
DAY = "yyyy\\-mm\\-dd"
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
    `is_imported` again are the same for everybody. The rows `above` say what the table is about. In
    a workbook, they have a sheet of their own. In CSV, a blank row follows them.

    With `mark`, a CSV file begins with the mark by which spreadsheets recognise UTF-8. Files that
    programs read have none.
    """
    if format == "xlsx":
        headings = columns if is_imported else [*map(gettext, columns)]
        yield from _write_xlsx(headings, rows, above, _Cells(is_plain=is_imported))
        return
    above = [*above, ()] if above else []
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


class TimeText(str):
    """A time as programs read it, and as a workbook shows it: `moment` has the zone to show."""

    moment: datetime


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
    """Writes the cells of a workbook, and knows the number formats that they use.

    `is_plain`: numbers and texts without formats, which are read again as they are.
    """

    STYLES = 2  # plain, heading

    def __init__(self, *, is_plain: bool) -> None:
        self._is_plain = is_plain
        self._formats: list[str] = []  # the style of each is its place and the STYLES before it

    def row(self, row: Sequence[Any], *, style: int = 0) -> str:
        return f"<row>{''.join(self._cell(value, style) for value in row)}</row>"

    def _cell(self, value: Any, style: int) -> str:
        if not self._is_plain:
            value = self._for_people(value)
        text = _text(value)
        if not text:
            return "<c/>"
        if _is_number(value) and sum(map(str.isdigit, text)) <= EXACT_DIGITS:
            if isinstance(value, Decimal) and not self._is_plain:
                style = self._style_of(AMOUNT)
            return f"<c{_named(style)}><v>{text}</v></c>"
        if isinstance(value, date) and not self._is_plain and value.year > FIRST_DAY.year + 1:
            return self._day_cell(value)
        text = NOT_IN_XML.sub("\ufffd", text[:MAX_CELL])
        if "_x" in text:
            text = LIKE_ESCAPE.sub("_x005F_", text)
        text = escape(text).replace("\r", "_x000D_")  # readers of XML take it for a line feed
        return f'<c{_named(style)} t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'

    def _for_people(self, value: Any) -> Any:
        match value:
            case TimeText():
                return value.moment
            case datetime() if value.tzinfo:
                return localtime(value)
            case Choices():
                return str(value.label)
            case bool():
                return gettext("yes") if value else gettext("no")
        return value

    def _day_cell(self, value: date) -> str:
        """A day or a time as the number of its days. The format of a time shows its zone."""
        code, clock = DAY, datetime.combine(value, time())
        if isinstance(value, datetime):
            clock = value.replace(tzinfo=None)
            zone = f"{value:%z}"
            zone = "UTC" if zone == "+0000" else f"{zone[:3]}:{zone[3:]}" if zone else ""
            code = f"{DAY}\\ hh:mm:ss{f'&quot; {zone}&quot;' if zone else ''}"
        days = (clock - FIRST_DAY) / timedelta(days=1)
        return f"<c{_named(self._style_of(code))}><v>{days:.9f}</v></c>"

    def _style_of(self, code: str) -> int:
        if code not in self._formats:
            self._formats.append(code)
        return self.STYLES + self._formats.index(code)

    def styles(self) -> str:
        """The part of the package with the styles: plain, the headings in bold, and the formats."""
        codes = [*enumerate(self._formats, 164)]  # smaller numbers are built in
        return (
            f'<styleSheet xmlns="{MAIN}"><numFmts count="{len(codes)}">'
            + "".join(f'<numFmt numFmtId="{id}" formatCode="{code}"/>' for id, code in codes)
            + '</numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
            '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2">'
            '<fill><patternFill patternType="none"/></fill>'
            '<fill><patternFill patternType="gray125"/></fill></fills><borders count="1">'
            "<border><left/><right/><top/><bottom/><diagonal/></border></borders>"
            '<cellStyleXfs count="1"><xf/></cellStyleXfs>'
            f'<cellXfs count="{len(codes) + self.STYLES}"><xf/><xf fontId="1" applyFont="1"/>'
            + "".join(f'<xf numFmtId="{id}" applyNumberFormat="1"/>' for id, _ in codes)
            + '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/>'
            "</cellStyles></styleSheet>"
        ).replace('<numFmts count="0"></numFmts>', "")


def _named(style: int) -> str:
    return f' s="{style}"' if style else ""


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
) -> Generator[bytes]:
    pipe, names = _Pipe(), []
    parts = _in_parts(rows)
    some = next(parts, None)
    begin = SHEET_BEGINS.format(FROZEN_HEADINGS, _columns([headings, *(some or ())]))
    begin += cells.row(headings, style=1)
    with ZipFile(pipe, "w", ZIP_DEFLATED, compresslevel=1) as book:
        if above:
            names.append(gettext("Summary"))
            text = "".join(map(cells.row, above))
            sheet_begins = SHEET_BEGINS.format("", _columns(above))
            book.writestr("xl/worksheets/sheet1.xml", f"{sheet_begins}{text}{SHEET_ENDS}")
        first = len(names)
        while some is not None or len(names) == first:
            names.append(gettext("Entries") if above else f"Sheet{len(names) + 1}")
            if len(names) > first + 1 and above:
                names[-1] += f" {len(names) - first}"
            with book.open(f"xl/worksheets/sheet{len(names)}.xml", "w") as sheet:
                size = sheet.write(begin.encode())
                length = 1
                while some and length < ROWS_OF_A_SHEET and size < BYTES_OF_A_SHEET:
                    size += sheet.write("".join(map(cells.row, some)).encode())
                    length += len(some)
                    some = next(parts, None)
                    if taken := pipe.take():
                        yield taken
                sheet.write(SHEET_ENDS.encode())
        for name, text in _frame_of_book(names).items():
            book.writestr(name, XML + text)
        book.writestr("xl/styles.xml", XML + cells.styles())
    yield pipe.take()


def _frame_of_book(names: Sequence[str]) -> dict[str, str]:
    """The files of the package besides its sheets."""
    numbers = range(1, len(names) + 1)
    return {
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
