"""Reading workbooks (XLSX) as rows of text, in bounded memory and time.

A workbook is a ZIP archive of XML. Its parts are parsed in pieces, and all elements of all parts
together are counted while they are read. A document type is refused, so there are no entities. Each
kind of file has its own limits (`Columns` in core/files/tables.py).

Values stay as they are in the file: a cell with text is that text. A cell that the spreadsheet made
a number may have lost leading zeros and its last digits, so its text is a `NumberText`.
"""

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache, partial
from io import BytesIO
from itertools import chain, repeat
from math import isfinite
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

from django.utils.translation import gettext_noop

from core.files.doubts import Doubts
from core.files.kinds import refuse_other_archives
from core.files.number_formats import Kind, NumberFormat
from core.inputs import InputProblem

MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 1000  # in the archive
MAX_ROWS = 1_048_576  # of a sheet, in every spreadsheet
MAX_COLUMNS = 16_384
MAX_ROW_LENGTH = 1_000_000  # characters
PIECE = 64 * 1024
MAX_NAMES = 10_000  # of elements and attributes, in one part
MAX_TAG = 1_000_000  # bytes of a tag or a comment
PLAIN_NUMBER = re.compile(r"[1-9][0-9]{0,6}(\.[0-9]{0,6}[1-9])?")  # as a float writes it, too
HUGE = 1e30
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
REFERENCE = re.compile("([A-Z]{1,3})([0-9]{1,7})")

# Rows and texts as most programs write them, without anything that XML reads in another way.
_PLAIN = r"[^<&\]\x00-\x08\x0b-\x1f\ufffe\uffff]*+"
_ITEM = rf'<t(?: xml:space="preserve")?>({_PLAIN})</t>'
PLAIN_CELL = re.compile(
    r'<c(?: r="([A-Z0-9]{2,10}+)")?(?: s="([0-9]{1,5}+)")?(?: t="([A-Za-z]{1,9}+)")?'
    rf"(?:><v>({_PLAIN})</v></c>|><is>{_ITEM}</is></c>|/>|></c>)|(.+)",
    re.DOTALL,
)
PLAIN_ROW = re.compile(
    r'<row(?: r="([0-9]{1,7})")?((?: [A-Za-z0-9:]{1,40}="[^"<&\s]{0,40}"){0,20}+)>'
)
PLAIN_TEXT = re.compile(f"<si>{_ITEM}</si>")
PLAIN_TEXTS = re.compile(f"(?:{PLAIN_TEXT.pattern})*+")
ATTRIBUTE = re.compile(' ([^=]+)="([^"]*)"')
# The days with the number 0.
FIRST_DAY, FIRST_DAY_OF_MAC = datetime(1899, 12, 30, tzinfo=UTC), datetime(1904, 1, 1, tzinfo=UTC)
LAST_DAY = 2_900_000  # of the year 9839

# What is wrong with a workbook. Imports store it in English, and pages translate it.
UNREADABLE = gettext_noop("The workbook cannot be read. Save it again as XLSX, or as CSV.")
UNREADABLE_BELOW = gettext_noop("Below line %(line)s: %(problem)s")
TOO_LARGE = gettext_noop("The workbook is larger than %(size)s MB. Save it as CSV.")
TOO_LARGE_UNPACKED = gettext_noop("The workbook is too large when it is unpacked. Save it as CSV.")
NO_SHEET = gettext_noop("The workbook has no sheet that can be seen. Show the sheet to be read.")
LATE_LINES = gettext_noop("The file has more than %(most)s lines. Split it into smaller ones.")
LATE_ROWS = gettext_noop("The sheet has more than %(most)s rows. Split it into smaller ones.")
ERROR_CELL = gettext_noop("column %(column)s has an error of the spreadsheet")
DATE_CELL = gettext_noop("column %(column)s has a date: format it as text")
PERCENT_CELL = gettext_noop("column %(column)s has a percentage: format it as a number")
NO_RESULT = gettext_noop(
    "column %(column)s has a formula without a value: open the file in a spreadsheet and save it,"
    " or put the value in its place"
)
WRONG_WORKBOOKS = (
    *(UNREADABLE_BELOW, UNREADABLE, TOO_LARGE, TOO_LARGE_UNPACKED, NO_SHEET, LATE_LINES, LATE_ROWS),
    *(ERROR_CELL, DATE_CELL, PERCENT_CELL, NO_RESULT),
)
# Doubts about a workbook. They are stored and translated, too.
HIDDEN_ROWS = gettext_noop(
    "Hidden or filtered rows have values, and are read: %(count)s, the first in line %(line)s."
)
HIDDEN_COLUMN = gettext_noop("The hidden column %(name)s has values, and is read: %(count)s.")
MERGED = gettext_noop(
    "Cells are merged: %(count)s areas, the first %(name)s. Only the first cell of an area has a"
    " value."
)
FORMULAS = gettext_noop(
    "Cells have formulas: %(count)s, the first in line %(line)s. The values that the spreadsheet"
    " stored are read."
)
OTHER_SHEET = gettext_noop("The sheet %(name)s has values, too, and is not read.")
HIDDEN_SHEET = gettext_noop("The hidden sheet %(name)s has values, and is not read.")
OTHER_NUMBERS = gettext_noop(
    "Cells show another number than they have, such as one with fewer decimals: %(count)s, the"
    " first in line %(line)s. The whole number is read."
)
WORKBOOK_DOUBTS = (
    *(HIDDEN_ROWS, HIDDEN_COLUMN, MERGED, FORMULAS, OTHER_SHEET, HIDDEN_SHEET, OTHER_NUMBERS),
)


class Limits(NamedTuple):
    """The largest workbook of a kind of file. A row with three texts has 7 elements, and 6 more in
    the table of texts."""

    elements: int
    unpacked_bytes: int


class NumberText(str):
    """The text of a cell that is a number."""

    __slots__ = ()


class DateText(str):
    """The text of a cell that is a day or a time: 2026-12-31, or 2026-12-31 18:30:00."""

    __slots__ = ()


# A row: its line, the texts by column (from 0), and what is wrong with it.
SheetRow = tuple[int, dict[int, str], list[str]]


class Workbook:
    """A workbook whose first visible sheet is read. `sheet` is the name of that sheet; `content`
    are the bytes of the file. `most` limits its bytes when it is unpacked, and the elements of all
    its parts together. Dates are mistakes, unless it `reads_dates`. `advance` is called with 0
    after each piece of a part, and may raise. Raises InputProblem, also while the rows are read."""

    def __init__(
        self,
        file: BinaryIO,
        doubts: Doubts,
        *,
        most: Limits,
        reads_dates: bool = False,
        advance: Callable[[int], object] = lambda _size: None,
    ) -> None:
        self._reads_dates, self._begins_1904 = reads_dates, False
        self.content = file.read(MAX_BYTES + 1)
        self._doubts = doubts
        self._advance = advance
        self._most, self._left = most, most.elements
        if len(self.content) > MAX_BYTES:
            raise InputProblem(TOO_LARGE % {"size": MAX_BYTES >> 20})
        with _refusing_broken_files():
            self._archive = zipfile.ZipFile(BytesIO(self.content))
            files = self._archive.infolist()
        if len(files) > MAX_FILES or sum(one.file_size for one in files) > most.unpacked_bytes:
            raise InputProblem(TOO_LARGE_UNPACKED)
        with _refusing_broken_files():
            self._names = {one.filename.lower().lstrip("/"): one for one in files}
            refuse_other_archives(self._names, self._mimetype())
            book, targets = self._find_book()
            sheets = self._sheets(book, targets)
            visible = [one for one in sheets if not one[2]]
            if not visible:
                raise InputProblem(NO_SHEET)
            self.sheet, self._part, _hidden = visible[0]
            texts = next((part for kind, part in targets.values() if kind == "sharedStrings"), "")
            styles = next((part for kind, part in targets.values() if kind == "styles"), "")
            self._texts = self._read_texts(texts) if texts else []
            self._formats = self._read_formats(styles) if styles else []
            for name, part, hidden in sheets:
                if part != self._part and self._has_values(part):
                    doubts.add(HIDDEN_SHEET if hidden else OTHER_SHEET, name=name)

    @property
    def number_of_bytes(self) -> int:
        """Of the sheet, unpacked."""
        return self._names[self._part.lower()].file_size

    def rows(self) -> Iterator[tuple[SheetRow, int]]:
        """Each row with a value or a mistake, and how many bytes of the sheet were read for it."""
        sheet = _Sheet(self._texts, self._formats, self._doubts, self._most)
        if self._reads_dates:
            sheet.first_day = FIRST_DAY_OF_MAC if self._begins_1904 else FIRST_DAY
        with _refusing_broken_files(lambda: sheet.line):
            for size in self._parse(self._part, sheet):
                sizes = chain([size], repeat(0))
                yield from zip(sheet.take(), sizes, strict=False)
            sheet.end()

    def _mimetype(self) -> bytes:
        if "mimetype" not in self._names:
            return b""
        with self._archive.open(self._names["mimetype"]) as stream:
            return stream.read(PIECE)

    def _find_book(self) -> tuple[str, dict[str, tuple[str, str]]]:
        """The main part, and its relations."""
        found = self._relations("")
        book = next(part for kind, part in found.values() if kind == "officeDocument")
        return book, self._relations(book)

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """The kind and the target of each relation of a part."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}

        def start(kind: str, values: dict[str, str]) -> None:
            if kind == "Relationship" and values.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, values["Target"]))
                found[values["Id"]] = (values["Type"].rpartition("/")[2], target.lstrip("/"))

        self._parse_all(posixpath.join(folder, "_rels", f"{name}.rels"), start)
        return found

    def _sheets(
        self, book: str, targets: dict[str, tuple[str, str]]
    ) -> list[tuple[str, str, bool]]:
        """The name, the part, and whether it is hidden, of each sheet with cells."""
        sheets: list[tuple[str, str, bool]] = []

        def start(kind: str, values: dict[str, str]) -> None:
            if kind == "workbookPr":
                self._begins_1904 = _is_true(values.get("date1904"))
            elif kind == "sheet":
                pk = next(text for name, text in values.items() if name.rpartition(":")[2] == "id")
                what, part = targets[pk]
                if what == "worksheet":
                    hidden = values.get("state", "visible") != "visible"
                    sheets.append((values["name"], part, hidden))

        self._parse_all(book, start)
        return sheets

    def _read_texts(self, part: str) -> list[str]:
        """The table of texts that cells refer to."""
        texts: list[str] = []
        reader = _Texts(texts)
        for _size in self._parse(part, reader):
            pass
        return texts

    def _read_formats(self, part: str) -> list[NumberFormat]:
        """The number format of each style."""
        own: dict[int, str] = {}
        by_number: dict[int, NumberFormat] = {}
        formats: list[NumberFormat] = []
        inside = False

        def start(kind: str, values: dict[str, str]) -> None:
            nonlocal inside
            if kind == "numFmt":
                own[int(values["numFmtId"])] = values.get("formatCode", "")
            elif kind in ("cellXfs", "cellStyleXfs", "dxfs"):
                inside = kind == "cellXfs"
            elif kind == "xf" and inside:
                number = int(values.get("numFmtId", 0))
                if number not in by_number:
                    by_number[number] = NumberFormat(number, own.get(number))
                formats.append(by_number[number])

        self._parse_all(part, start)
        return formats

    def _has_values(self, part: str) -> bool:
        reader = _Sheet(self._texts, [], Doubts(), self._most)
        for _size in self._parse(part, reader):
            if any(texts or problems for _line, texts, problems in reader.take()):
                return True
        return False

    def _parse_all(self, part: str, start: Callable[[str, dict[str, str]], None]) -> None:
        handler = _Elements(lambda kind: partial(start, kind))
        for _size in self._parse(part, handler):
            pass

    def _parse(self, part: str, handler: "_Elements") -> Iterator[int]:
        """Parses a part in pieces; yields how many bytes of it each piece has. Counts the elements
        of all parts together."""
        names: dict[str, str] = {}  # of elements and attributes, which the parser keeps
        parser = expat.ParserCreate(intern=names)
        parser.buffer_text = True
        starts: dict[str, Start | None] = {}
        ends: dict[str, End | None] = {}

        def start(name: str, values: dict[str, str]) -> None:
            self._count(1)
            try:
                begin = starts[name]
            except KeyError:
                kind = name.rpartition(":")[2]
                starts[name], ends[name] = handler.start_of(kind), handler.end_of(kind)
                begin = starts[name]
            if begin is not None:
                begin(values)

        def end(name: str) -> None:
            if (finish := ends[name]) is not None:
                finish()

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.CharacterDataHandler = handler.add
        parser.XmlDeclHandler = handler.declare
        parser.StartCdataSectionHandler = handler.begin_section
        read, rest = 0, b""
        with self._archive.open(self._names[part.lower()]) as stream:
            while piece := stream.read(PIECE):
                if not read and b"\0" in piece[:4]:  # UTF-16
                    handler.is_plain = False
                content, tag, rest = (rest + piece).rpartition(handler.last_tag)
                content, rest = (content + tag, rest) if tag else (rest, b"")
                if parser.CurrentByteIndex == read and handler.is_between():
                    content = self._read_plain(content, handler)
                parser.Parse(content, False)
                read += len(content)
                if len(names) > MAX_NAMES or read - parser.CurrentByteIndex > MAX_TAG:
                    raise ValueError
                try:
                    self._advance(0)
                except Exception as error:
                    raise _OtherError from error
                yield len(piece)
            parser.Parse(rest, True)
            yield 0

    def _read_plain(self, content: bytes, handler: "_Elements") -> bytes:
        """Reads what it can without the XML parser, twice as fast; returns the rest."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        end = handler.read_plain(text)
        self._count(text.count("<", 0, end) - text.count("</", 0, end))
        return text[end:].encode()

    def _count(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise InputProblem(TOO_LARGE_UNPACKED)


Start = Callable[[dict[str, str]], object]  # called with the attributes
End = Callable[[], object]


class _Elements:
    """The handlers of each kind of element, and of text.

    If `is_plain` and `is_between()` hold, elements that end with `last_tag` may be read without the
    XML parser.
    """

    add: Callable[[str], object] | None = None
    last_tag = b"\n"
    is_plain = True  # in UTF-8, and without CDATA sections

    def __init__(
        self,
        start_of: Callable[[str], Start | None],
        end_of: Callable[[str], End | None] = lambda _kind: None,
    ) -> None:
        self.start_of, self.end_of = start_of, end_of

    def is_between(self) -> bool:
        """Whether the next element is one that `read_plain` knows."""
        return False

    def read_plain(self, _text: str) -> int:
        """Reads the plain elements at the start of the text; returns where they end."""
        return 0

    def declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        self.is_plain = (encoding or "utf-8").lower() == "utf-8"

    def begin_section(self) -> None:
        self.is_plain = False


class _Texts(_Elements):
    """Collects the table of texts. Hints for pronunciation (`rPh`) are not part of a text."""

    last_tag = b"</si>"

    def __init__(self, texts: list[str]) -> None:
        starts: dict[str, Start] = {
            "t": self._start_text,
            "si": self._start_item,
            "rPh": self._start_hint,
        }
        ends: dict[str, End] = {
            "t": self._end_text,
            "si": self._end_item,
            "rPh": self._end_hint,
            "sst": self._end_items,
        }
        super().__init__(starts.get, ends.get)
        self._all = texts
        self._parts: list[str] = []
        self._size = 0
        self._is_text = self._is_hint = False
        self._is_between = False

    def is_between(self) -> bool:
        return self.is_plain and self._is_between and not self._is_hint

    def read_plain(self, text: str) -> int:
        plain = PLAIN_TEXTS.match(text)
        end = plain.end() if plain else 0
        texts = PLAIN_TEXT.findall(text, 0, end)
        if end > MAX_ROW_LENGTH and max(map(len, texts), default=0) > MAX_ROW_LENGTH:
            raise InputProblem(TOO_LARGE_UNPACKED)
        self._all += map(_unescape, texts) if "_x" in text else texts
        return end

    def _start_text(self, _values: dict[str, str]) -> None:
        self._is_text = not self._is_hint

    def _start_item(self, _values: dict[str, str]) -> None:
        self._parts, self._size, self._is_between = [], 0, False

    def _start_hint(self, _values: dict[str, str]) -> None:
        self._is_hint = True

    def _end_text(self) -> None:
        self._is_text = False

    def _end_item(self) -> None:
        self._all.append(_unescape("".join(self._parts)))
        self._is_between = True

    def _end_items(self) -> None:
        self._is_between = False

    def _end_hint(self) -> None:
        self._is_hint = False

    def add(self, text: str) -> None:
        if self._is_text:
            self._size += len(text)
            if self._size > MAX_ROW_LENGTH:
                raise InputProblem(TOO_LARGE_UNPACKED)
            self._parts.append(text)


class _Sheet(_Elements):
    """Collects the rows of a sheet. `line` is that of the last row. `first_day` has the number 0;
    without it, dates are not read."""

    first_day: datetime | None = None
    last_tag = b"</row>"

    def __init__(
        self, texts: list[str], formats: list[NumberFormat], doubts: Doubts, most: Limits
    ) -> None:
        starts: dict[str, Start] = {
            "c": self._start_cell,
            "v": self._start_text,
            "t": self._start_text,
            "f": self._start_formula,
            "row": self._start_row,
            "rPh": self._start_hint,
            "sheetData": self._start_rows,
            "col": self._hide_columns,
            "sheetFormatPr": self._hide_rows,
            "mergeCell": self._doubt_merged,
        }
        ends: dict[str, End] = {
            "c": self._end_cell,
            "v": self._end_value,
            "t": self._end_text,
            "row": self._end_row,
            "rPh": self._end_hint,
            "sheetData": self._end_rows,
        }
        super().__init__(starts.get, ends.get)
        self.line = 0
        self._texts, self._formats, self._doubts = texts, formats, doubts
        self._rows: list[SheetRow] = []
        self._cells: dict[int, str] = {}
        self._problems: list[str] = []
        self._hidden_columns: set[int] = set()
        self._hidden_places = 0
        self._is_hidden = self._hides_rows = False
        self._column, self._size = -1, 0
        self._line_text = ""
        self._most, self._shared = most, 0
        self._attributes: dict[str, str] = {}
        self._value: str | None = None
        self._parts: list[str] = []
        self._is_text = self._is_hint = self._has_formula = self._in_rows = False
        self._is_between = False

    def is_between(self) -> bool:
        return self.is_plain and self._is_between and not self._is_hint

    def read_plain(self, text: str) -> int:
        end = 0
        for row in text.split("</row>")[:-1]:
            start = PLAIN_ROW.match(row)
            cells = PLAIN_CELL.findall(row, start.end()) if start else []
            attributes = _attributes(start[2]) if start else None
            if start is None or attributes is None:
                break
            if cells and cells[-1][-1]:
                break  # something else is between them
            self._start_row({"r": start[1], **attributes} if start[1] else attributes)
            self._read_cells(cells)
            self._end_row()
            end += len(row) + len("</row>")
        return end

    def _read_cells(self, cells: list[tuple[str, str, str, str, str, str]]) -> None:
        names, line, texts = _names(), self._line_text, self._texts
        are_shown, size, shared = not self._hidden_columns, 0, 0
        for place, style, kind, value, inline, _other in cells:
            column = self._column + 1
            is_shared = kind == "s" and value.isdecimal()
            is_next = not place or place == names[column] + line
            if are_shown and is_next and (is_shared or kind == "inlineStr"):
                self._column = column
                text = texts[int(value)] if is_shared else _unescape(inline)
                size += len(text)
                shared += len(text) if is_shared else 0
                if text and not text.isspace():
                    self._cells[column] = text
                continue
            size += len(value) + len(inline)
            where = {"r": place} if place else {}
            self._start_cell({**where, "s": style, "t": kind or "n"})
            self._value = value
            if inline:
                self._parts.append(inline)
            self._end_cell()
        self._add_size(size)
        self._add_shared(shared)

    def take(self) -> list[SheetRow]:
        """The rows that are complete."""
        taken, self._rows = self._rows, []
        return taken

    def end(self) -> None:
        """The sheet has ended. It must not break off."""
        if self._in_rows:
            raise ValueError

    def _start_text(self, _values: dict[str, str]) -> None:
        self._is_text = not self._is_hint

    def _start_formula(self, _values: dict[str, str]) -> None:
        self._has_formula = True

    def _start_row(self, values: dict[str, str]) -> None:
        line = int(values.get("r", self.line + 1))
        if line <= self.line:
            raise ValueError
        if line > MAX_ROWS:
            raise InputProblem(LATE_ROWS % {"most": f"{MAX_ROWS:,}"})
        self.line, self._cells, self._problems = line, {}, []
        self._is_between = False
        self._line_text = str(line)
        self._column, self._size = -1, 0
        self._is_hidden = _is_true(values.get("hidden")) or (
            self._hides_rows and "hidden" not in values
        )
        self._is_hidden |= "ht" in values and float(values["ht"]) == 0

    def _start_hint(self, _values: dict[str, str]) -> None:
        self._is_hint = True

    def _start_rows(self, _values: dict[str, str]) -> None:
        self._in_rows = True

    def _hide_rows(self, values: dict[str, str]) -> None:
        self._hides_rows = _is_true(values.get("zeroHeight"))

    def _doubt_merged(self, values: dict[str, str]) -> None:
        self._doubts.add(MERGED, name=values["ref"], once="merged")

    def _hide_columns(self, values: dict[str, str]) -> None:
        if _is_true(values.get("hidden")) or float(values.get("width", 1)) == 0:
            first, last = int(values["min"]) - 1, int(values["max"])
            self._hidden_places += last - first  # ranges of columns do not overlap
            if not 0 <= first < last <= MAX_COLUMNS or self._hidden_places > MAX_COLUMNS:
                raise ValueError
            self._hidden_columns.update(range(first, last))

    def _start_cell(self, values: dict[str, str]) -> None:
        column = self._column + 1
        name = _names()[column]
        if "r" in values and values["r"] != name + self._line_text:
            found = _column(values["r"], self.line)
            if not column <= found < MAX_COLUMNS:
                raise ValueError
            column = found
        self._column, self._attributes = column, values
        self._value, self._has_formula = None, False
        if self._parts:
            self._parts = []

    def add(self, text: str) -> None:
        if self._is_text:
            self._add_size(len(text))
            self._parts.append(text)

    def _add_size(self, size: int) -> None:
        self._size += size
        if self._size > MAX_ROW_LENGTH:
            raise InputProblem(TOO_LARGE_UNPACKED)

    def _end_value(self) -> None:
        parts = self._parts
        self._value = parts[0] if len(parts) == 1 else "".join(parts)
        self._parts, self._is_text = [], False

    def _end_text(self) -> None:
        self._is_text = False

    def _end_hint(self) -> None:
        self._is_hint = False

    def _end_row(self) -> None:
        if self._cells or self._problems:
            if self._is_hidden:
                self._doubts.add(HIDDEN_ROWS, line=self.line)
            self._rows.append((self.line, self._cells, self._problems))
        self._is_between = True

    def _end_rows(self) -> None:
        self._in_rows = self._is_between = False

    def _end_cell(self) -> None:
        if self._value is None and not self._parts and not self._has_formula:
            return  # empty
        text, problem = self._text()
        if problem:
            self._problems.append(problem % {"column": column_name(self._column)})
        if not text or text.isspace():
            return
        if self._has_formula:
            self._doubts.add(FORMULAS, line=self.line)
        if self._column in self._hidden_columns:
            self._doubts.add(HIDDEN_COLUMN, name=column_name(self._column))
        self._cells[self._column] = text

    def _text(self) -> tuple[str, str]:
        """The text of the cell, and what is wrong with it."""
        value, kind = self._value, self._attributes.get("t", "n")
        if kind == "inlineStr":
            return _unescape("".join(self._parts)), ""
        if self._has_formula and not value and not (kind == "str" and value is not None):
            return "", NO_RESULT
        if not value:
            return "", ""
        match kind:
            case "n":
                return self._number(value)
            case "s":
                return self._shared_text(int(value)), ""
            case "str":
                return _unescape(value), ""
            case "b":
                return ("TRUE" if _is_true(value) else "FALSE"), ""
            case "e":
                return "", ERROR_CELL
            case "d":
                return "", DATE_CELL
        raise ValueError

    def _shared_text(self, place: int) -> str:
        if place < 0:
            raise ValueError
        text = self._texts[place]
        self._add_size(len(text))
        self._add_shared(len(text))
        return text

    def _add_shared(self, size: int) -> None:
        """Cells may share a long text, so that all together are larger than the file."""
        self._shared += size
        if self._shared > self._most.unpacked_bytes:
            raise InputProblem(TOO_LARGE_UNPACKED)

    def _number(self, value: str) -> tuple[str, str]:
        style = self._attributes.get("s", "")
        if not style or not self._formats:
            return NumberText(_number_text(value)), ""
        format = self._formats[int(style)]
        if format.kind is Kind.DATE:
            return self._date(float(value), format)
        if format.kind is Kind.PERCENTAGE:
            return "", PERCENT_CELL
        text = _number_text(value)
        if format.zeros and text.isdecimal():
            text = text.zfill(format.zeros)  # 00123, as it is shown
        elif not format.shows(text):
            self._doubts.add(OTHER_NUMBERS, line=self.line)
        return NumberText(text), ""

    def _date(self, number: float, format: NumberFormat) -> tuple[str, str]:
        # Before March 1900, programs count the days differently.
        if self.first_day is None or not format.shows_day or not 61 <= number < LAST_DAY:
            return "", DATE_CELL
        time = self.first_day + timedelta(seconds=round(number * 86_400))
        if time == time.replace(hour=0, minute=0, second=0):
            return DateText(f"{time:%Y-%m-%d}"), ""
        if not format.shows_hour:
            self._doubts.add(OTHER_NUMBERS, line=self.line)
        return DateText(f"{time:%Y-%m-%d %H:%M:%S}"), ""


@lru_cache(100)
def _attributes(text: str) -> dict[str, str] | None:
    """The attributes of a row besides its number; None if one is repeated."""
    pairs = ATTRIBUTE.findall(text)
    found = dict(pairs)
    return None if len(found) < len(pairs) or "r" in found else found


def _refuse_doctype(*_arguments: Any) -> None:
    raise InputProblem(UNREADABLE)


class _OtherError(Exception):
    """An error that is not one of the file: its cause."""


class _refusing_broken_files:
    """Raises InputProblem for whatever a broken file leads to. `line` gives the line so far."""

    def __init__(self, line: Callable[[], int] | None = None) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, InputProblem):
            return
        if isinstance(error, _OtherError) and error.__cause__:
            raise error.__cause__
        if self._line is None:
            raise InputProblem(UNREADABLE) from None
        values = {"line": self._line(), "problem": UNREADABLE}
        raise InputProblem(UNREADABLE_BELOW % values) from None


@cache
def _names() -> list[str]:
    return [column_name(place) for place in range(MAX_COLUMNS)]


def column_name(place: int) -> str:
    """The letters of a column, from 0: A, B, …, AA."""
    name, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        name = chr(65 + rest) + name
    return name


def _column(place: str, line: int) -> int:
    found = REFERENCE.fullmatch(place)
    if not found or int(found[2]) != line:
        raise ValueError
    column = 0
    for letter in found[1]:
        column = 26 * column + ord(letter) - 64
    return column - 1


def _is_true(value: str | None) -> bool:
    return value in ("1", "true")


def _unescape(text: str) -> str:
    """A text in which _x000D_ is the character with this number, as the format prescribes."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _number_text(value: str) -> str:
    """The number as a spreadsheet shows it, without an exponent if it is not huge."""
    if PLAIN_NUMBER.fullmatch(value):
        return value
    number = float(value)
    if not isfinite(number):
        raise ValueError
    if abs(number) >= HUGE:
        return repr(number)
    if number.is_integer():
        return f"{number:.0f}"
    return format(Decimal(repr(number)), "f")
