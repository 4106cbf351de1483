"""Reading workbooks (XLSX) as rows of text, in bounded memory and time.

A workbook is a ZIP archive of XML. Its parts are parsed in pieces, and all elements of all parts
together are counted while they are read. A document type is refused, so there are no entities.

Values stay as they are in the file: a cell with text is that text. A cell that the spreadsheet made
a number may have lost leading zeros and its last digits, so its text is a `NumberText`.
"""

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import BytesIO
from math import isfinite
from typing import Any, BinaryIO
from xml.parsers import expat

from django.utils.translation import gettext_noop

from core.files.doubts import Doubts
from core.files.kinds import refuse_other_archives
from core.files.number_formats import Kind, NumberFormat
from core.inputs import InputProblem

MAX_BYTES = 64 * 1024 * 1024
MAX_UNPACKED_BYTES = 320 * 1024 * 1024  # a million codes with serial number and PIN take 250 MB
MAX_FILES = 1000  # in the archive
MAX_ROWS = 1_048_576  # of a sheet, in every spreadsheet
MAX_COLUMNS = 16_384
# Of all parts together. A row with three texts has 7 elements, and 6 more in the table of texts.
MAX_ELEMENTS = 16 * MAX_ROWS
MAX_ROW_LENGTH = 1_000_000  # characters
PIECE = 64 * 1024
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
REFERENCE = re.compile("([A-Z]{1,3})([0-9]{1,7})")

# What is wrong with a workbook. Imports store it in English, and pages translate it.
UNREADABLE = gettext_noop("The workbook cannot be read. Save it again as XLSX, or as CSV.")
UNREADABLE_BELOW = gettext_noop("Below line %(line)s: %(problem)s")
TOO_LARGE = gettext_noop("The workbook is larger than %(size)s MB. Save it as CSV.")
TOO_LARGE_UNPACKED = gettext_noop("The workbook is too large when it is unpacked. Save it as CSV.")
NO_SHEET = gettext_noop("The workbook has no sheet that can be seen. Show the sheet to be read.")
LATE_ROWS = gettext_noop("The sheet has more than %(most)s rows. Split it into smaller ones.")
ERROR_CELL = gettext_noop("column %(column)s has an error of the spreadsheet")
DATE_CELL = gettext_noop("column %(column)s has a date: format it as text")
PERCENT_CELL = gettext_noop("column %(column)s has a percentage: format it as a number")
NO_RESULT = gettext_noop(
    "column %(column)s has a formula without a value: open the file in a spreadsheet and save it,"
    " or put the value in its place"
)
WRONG_WORKBOOKS = (
    *(UNREADABLE_BELOW, UNREADABLE, TOO_LARGE, TOO_LARGE_UNPACKED, NO_SHEET, LATE_ROWS),
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


GENERAL = NumberFormat(0)


class NumberText(str):
    """The text of a cell that is a number."""

    __slots__ = ()


# A row: its line, the texts by column (from 0), and what is wrong with it.
SheetRow = tuple[int, dict[int, str], list[str]]


class Workbook:
    """A workbook whose first visible sheet is read. `sheet` is the name of that sheet; `content`
    are the bytes of the file. Raises InputProblem, also while the rows are read."""

    def __init__(self, file: BinaryIO, doubts: Doubts) -> None:
        self.content = file.read(MAX_BYTES + 1)
        self._doubts = doubts
        self._left = MAX_ELEMENTS
        if len(self.content) > MAX_BYTES:
            raise InputProblem(TOO_LARGE % {"size": MAX_BYTES >> 20})
        with _refusing_broken_files():
            self._archive = zipfile.ZipFile(BytesIO(self.content))
            files = self._archive.infolist()
        if len(files) > MAX_FILES or sum(one.file_size for one in files) > MAX_UNPACKED_BYTES:
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
        """Each row with a value or a mistake, and how many bytes of the sheet were read."""
        sheet = _Sheet(self._texts, self._formats, self._doubts)
        with _refusing_broken_files(lambda: sheet.line):
            for size in self._parse(self._part, sheet):
                yield from ((row, size) for row in sheet.take())
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
            if kind == "sheet":
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
        reader = _Sheet(self._texts, [], Doubts())
        for _size in self._parse(part, reader):
            if any(texts or problems for _line, texts, problems in reader.take()):
                return True
        return False

    def _parse_all(self, part: str, start: Callable[[str, dict[str, str]], None]) -> None:
        handler = _Elements()
        handler.start = start  # type: ignore[assignment,method-assign]
        for _size in self._parse(part, handler):
            pass

    def _parse(self, part: str, handler: "_Elements") -> Iterator[int]:
        """Parses a part in pieces; yields how many bytes of it each piece has. Counts the elements
        of all parts together."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        local: dict[str, str] = {}
        begin = handler.start

        def start(name: str, values: dict[str, str]) -> None:
            self._left -= 1
            if self._left < 0:
                raise InputProblem(TOO_LARGE_UNPACKED)
            kind = local.get(name)
            if kind is None:
                kind = local[name] = name.rpartition(":")[2]
            begin(kind, values)

        parser.StartElementHandler = start
        parser.StartDoctypeDeclHandler = _refuse_doctype
        if not isinstance(handler, _Texts | _Sheet):
            parser.EndElementHandler = None
        else:
            finish = handler.finish
            parser.EndElementHandler = lambda name: finish(local[name])
            parser.CharacterDataHandler = handler.add
        with self._archive.open(self._names[part.lower()]) as stream:
            while piece := stream.read(PIECE):
                parser.Parse(piece, False)
                yield len(piece)
            parser.Parse(b"", True)


class _Elements:
    """Handles the start of an element."""

    def start(self, kind: str, values: dict[str, str]) -> None:
        raise NotImplementedError


class _Texts(_Elements):
    """Collects the table of texts. Hints for pronunciation (`rPh`) are not part of a text."""

    def __init__(self, texts: list[str]) -> None:
        self._all = texts
        self._parts: list[str] = []
        self._size = 0
        self._is_text = self._is_hint = False

    def start(self, kind: str, values: dict[str, str]) -> None:
        if kind == "t":
            self._is_text = not self._is_hint
        elif kind == "si":
            self._parts, self._size = [], 0
        elif kind == "rPh":
            self._is_hint = True

    def add(self, text: str) -> None:
        if self._is_text:
            self._size += len(text)
            if self._size > MAX_ROW_LENGTH:
                raise InputProblem(TOO_LARGE_UNPACKED)
            self._parts.append(text)

    def finish(self, kind: str) -> None:
        if kind == "t":
            self._is_text = False
        elif kind == "rPh":
            self._is_hint = False
        elif kind == "si":
            self._all.append(_unescape("".join(self._parts)))


class _Sheet(_Elements):
    """Collects the rows of a sheet. `line` is that of the last row."""

    def __init__(self, texts: list[str], formats: list[NumberFormat], doubts: Doubts) -> None:
        self.line = 0
        self._texts, self._formats, self._doubts = texts, formats, doubts
        self._rows: list[SheetRow] = []
        self._cells: dict[int, str] = {}
        self._problems: list[str] = []
        self._hidden_columns: set[int] = set()
        self._hidden_ranges = 0
        self._is_hidden = self._hides_rows = False
        self._column, self._size = -1, 0
        self._kind = self._style = ""
        self._value: str | None = None
        self._parts: list[str] = []
        self._is_text = self._is_hint = self._has_formula = self._in_rows = False

    def take(self) -> list[SheetRow]:
        """The rows that are complete."""
        taken, self._rows = self._rows, []
        return taken

    def end(self) -> None:
        """The sheet has ended. It must not break off."""
        if self._in_rows:
            raise ValueError

    def start(self, kind: str, values: dict[str, str]) -> None:
        match kind:
            case "c":
                self._start_cell(values)
            case "v" | "t":
                self._is_text = not self._is_hint
            case "f":
                self._has_formula = True
            case "row":
                line = int(values.get("r", self.line + 1))
                if line <= self.line:
                    raise ValueError
                if line > MAX_ROWS:
                    raise InputProblem(LATE_ROWS % {"most": f"{MAX_ROWS:,}"})
                self.line, self._cells, self._problems = line, {}, []
                self._column, self._size = -1, 0
                self._is_hidden = _is_true(values.get("hidden")) or (
                    self._hides_rows and "hidden" not in values
                )
                self._is_hidden |= "ht" in values and float(values["ht"]) == 0
            case "rPh":
                self._is_hint = True
            case "sheetData":
                self._in_rows = True
            case "col":
                self._hide_columns(values)
            case "sheetFormatPr":
                self._hides_rows = _is_true(values.get("zeroHeight"))
            case "mergeCell":
                self._doubts.add(MERGED, name=values["ref"], once="merged")

    def _hide_columns(self, values: dict[str, str]) -> None:
        if _is_true(values.get("hidden")) or float(values.get("width", 1)) == 0:
            first, last = int(values["min"]) - 1, int(values["max"])
            self._hidden_ranges += 1
            if not 0 <= first < last <= MAX_COLUMNS or self._hidden_ranges > MAX_COLUMNS:
                raise ValueError
            self._hidden_columns.update(range(first, last))

    def _start_cell(self, values: dict[str, str]) -> None:
        place = values.get("r")
        column = self._column + 1 if place is None else _column(place, self.line)
        if column <= self._column or column >= MAX_COLUMNS:
            raise ValueError
        self._column = column
        self._kind, self._style = values.get("t", "n"), values.get("s", "")
        self._value, self._parts, self._has_formula = None, [], False

    def add(self, text: str) -> None:
        if self._is_text:
            self._size += len(text)
            if self._size > MAX_ROW_LENGTH:
                raise InputProblem(TOO_LARGE_UNPACKED)
            self._parts.append(text)

    def finish(self, kind: str) -> None:
        if kind == "v":
            self._value, self._parts, self._is_text = "".join(self._parts), [], False
        elif kind == "t":
            self._is_text = False
        elif kind == "rPh":
            self._is_hint = False
        elif kind == "c":
            self._finish_cell()
        elif kind == "row":
            if self._cells or self._problems:
                if self._is_hidden:
                    self._doubts.add(HIDDEN_ROWS, line=self.line)
                self._rows.append((self.line, self._cells, self._problems))
        elif kind == "sheetData":
            self._in_rows = False

    def _finish_cell(self) -> None:
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
        value, kind = self._value, self._kind
        if kind == "inlineStr":
            return _unescape("".join(self._parts)), ""
        if self._has_formula and not value and not (kind == "str" and value is not None):
            return "", NO_RESULT
        if not value:
            return "", ""
        match kind:
            case "s":
                place = int(value)
                if place < 0:
                    raise ValueError
                return self._texts[place], ""
            case "str":
                return _unescape(value), ""
            case "b":
                return ("TRUE" if _is_true(value) else "FALSE"), ""
            case "e":
                return "", ERROR_CELL
            case "d":
                return "", DATE_CELL
            case "n":
                return self._number(value)
        raise ValueError

    def _number(self, value: str) -> tuple[str, str]:
        format = self._formats[int(self._style)] if self._style and self._formats else GENERAL
        if format.kind is Kind.DATE:
            return "", DATE_CELL
        if format.kind is Kind.PERCENTAGE:
            return "", PERCENT_CELL
        text = _number_text(value)
        if format.zeros and text.isdecimal():
            text = text.zfill(format.zeros)  # 00123, as it is shown
        elif not format.shows(text):
            self._doubts.add(OTHER_NUMBERS, line=self.line)
        return NumberText(text), ""


def _refuse_doctype(*_arguments: Any) -> None:
    raise InputProblem(UNREADABLE)


class _refusing_broken_files:
    """Raises InputProblem for whatever a broken file leads to. `line` gives the line so far."""

    def __init__(self, line: Callable[[], int] | None = None) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, InputProblem):
            return
        if self._line is None:
            raise InputProblem(UNREADABLE) from None
        values = {"line": self._line(), "problem": UNREADABLE}
        raise InputProblem(UNREADABLE_BELOW % values) from None


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
    number = float(value)
    if not isfinite(number):
        raise ValueError
    if number.is_integer():
        return f"{number:.0f}"
    return format(Decimal(repr(number)), "f")
