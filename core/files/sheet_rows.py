"""The rows of a sheet.

Values stay as they are in the file: a cell with text is that text. A cell that the spreadsheet made
a number may have lost leading zeros and its last digits, so its text is a `NumberText`.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from math import isfinite

from core.files.cells import MOST_ODD_VALUES, DateText, NumberText
from core.files.doubts import Doubts
from core.files.number_formats import Kind, NumberFormat
from core.files.sheet_texts import ITEM, MAX_ROW_LENGTH, PLAIN, unescape
from core.files.workbook_sentences import (
    DATE_CELL,
    ERROR_CELL,
    FORMULAS,
    HIDDEN_COLUMN,
    HIDDEN_ROWS,
    HIDDEN_VALUES,
    LATE_ROWS,
    MANY_ODD_VALUES,
    MERGED,
    NO_RESULT,
    OTHER_NUMBERS,
    PERCENT_CELL,
    TOO_LARGE_UNPACKED,
)
from core.files.xml_parts import Elements, End, Limits, Start
from core.inputs import InputProblem

MAX_ROWS = 1_048_576  # of a sheet, in every spreadsheet
MAX_COLUMNS = 16_384
WHOLE = re.compile("[1-9][0-9]{0,14}")
# Numbers that Python writes in the same way.
PLAIN_NUMBER = re.compile(rf"{WHOLE.pattern}|[1-9][0-9]{{0,6}}\.[0-9]{{0,6}}[1-9]")
HUGE = 1e30
REFERENCE = re.compile("([A-Z]{1,3})([0-9]{1,7})")
LAST_DAY = 2_900_000  # of the year 9839
# In points, and in digits. Nothing can be seen in a row or column that is smaller.
LEAST_HEIGHT, LEAST_WIDTH = 1, 0.5

# Rows as most programs write them, without anything that XML reads in another way.
PLAIN_CELL = re.compile(
    r'<c(?: r="([A-Z0-9]{2,10}+)")?(?: s="([0-9]{1,5}+)")?(?: t="([A-Za-z]{1,9}+)")?'
    rf"(?:><v>({PLAIN})</v></c>|><is>{ITEM}</is></c>|/>|></c>)|(.+)",
    re.DOTALL,
)
PLAIN_ROW = re.compile(
    r'<row(?: r="([0-9]{1,7})")?((?: [A-Za-z0-9:]{1,40}="[^"<&\s]{0,40}"){0,20})>'
)
ATTRIBUTE = re.compile(' ([^=]+)="([^"]*)"')

# A row: its line, the texts by column (from 0), and what is wrong with it.
SheetRow = tuple[int, dict[int, str], list[str]]


class Sheet(Elements):
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
            "sheetFormatPr": self._hide_by_default,
            "sheetView": self._hide_zeros,
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
        # The styles of cells in which a whole number is shown as it is.
        whole = [n for n, one in enumerate(formats) if one.shows_whole]
        self._whole = _names_of(whole) if formats else {""}
        # The styles of cells in which no text can be seen, and those in which a text can.
        self._hides_texts = {n for n, one in enumerate(formats) if one.hides_text}
        self._shows_texts = _names_of({*range(len(formats))} - self._hides_texts)
        self._rows: list[SheetRow] = []
        self._cells: dict[int, str] = {}
        self._problems: list[str] = []
        self._hidden_columns: set[int] = set()
        self._hidden_places = 0
        self._is_hidden = self._hides_rows = self._hides_columns = self._hides_zeros = False
        self._may_hide = any(one.may_hide for one in formats)
        self._column, self._size = -1, 0
        self._odd_numbers = 0  # whose text had to be converted
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
        all_texts, shows_texts = not self._hides_texts, self._shows_texts
        for place, style, kind, value, inline, _other in cells:
            column = self._column + 1
            is_shared = kind == "s" and value.isdecimal()
            is_next = not place or place == names[column] + line
            is_whole = not kind and style in self._whole and WHOLE.fullmatch(value)
            if are_shown and is_next and is_whole:
                self._column = column
                self._cells[column] = NumberText(value)
                size += len(value)
                continue
            is_text = (is_shared or kind == "inlineStr") and (all_texts or style in shows_texts)
            if are_shown and is_next and is_text:
                self._column = column
                text = texts[int(value)] if is_shared else unescape(inline)
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
        self._is_hidden = is_true(values.get("hidden")) or (
            self._hides_rows and "hidden" not in values
        )
        self._is_hidden |= "ht" in values and float(values["ht"]) < LEAST_HEIGHT

    def _start_hint(self, _values: dict[str, str]) -> None:
        self._is_hint = True

    def _start_rows(self, _values: dict[str, str]) -> None:
        self._in_rows = True

    def _hide_by_default(self, values: dict[str, str]) -> None:
        self._hides_rows = is_true(values.get("zeroHeight"))
        if not self._hides_columns and float(values.get("defaultColWidth", 1)) < LEAST_WIDTH:
            self._hides_columns = True
            self._hidden_columns.update(range(MAX_COLUMNS))

    def _hide_zeros(self, values: dict[str, str]) -> None:
        self._hides_zeros = values.get("showZeros") in ("0", "false")
        self._may_hide |= self._hides_zeros

    def _doubt_merged(self, values: dict[str, str]) -> None:
        self._doubts.add(MERGED, name=values["ref"], once="merged")

    def _hide_columns(self, values: dict[str, str]) -> None:
        is_hidden = is_true(values.get("hidden")) or float(values.get("width", 1)) < LEAST_WIDTH
        if is_hidden or self._hides_columns:
            first, last = int(values["min"]) - 1, int(values["max"])
            self._hidden_places += last - first  # ranges of columns do not overlap
            if not 0 <= first < last <= MAX_COLUMNS or self._hidden_places > MAX_COLUMNS:
                raise ValueError
            places = range(first, last)
            if is_hidden:
                self._hidden_columns.update(places)
            else:
                self._hidden_columns.difference_update(places)

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
        if self._may_hide and self._is_unseen(text):
            name = column_name(self._column) + self._line_text
            self._doubts.add(HIDDEN_VALUES, name=name, once="hidden")
        self._cells[self._column] = text

    def _is_unseen(self, text: str) -> bool:
        """Whether the style of the cell hides this text or number."""
        style = self._style()
        if not isinstance(text, NumberText | DateText):
            return style in self._hides_texts
        if self._hides_zeros and not text.strip("-0."):
            return True
        return bool(self._formats) and self._formats[style].hides(text)

    def _style(self) -> int:
        return int(self._attributes.get("s") or 0)

    def _text(self) -> tuple[str, str]:
        """The text of the cell, and what is wrong with it."""
        value, kind = self._value, self._attributes.get("t", "n")
        if kind == "inlineStr":
            return unescape("".join(self._parts)), ""
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
                return unescape(value), ""
            case "b":
                return ("TRUE" if is_true(value) else "FALSE"), ""
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
        if not self._formats:
            return NumberText(self._number_text(value)), ""
        format = self._formats[self._style()]
        if format.kind is Kind.DATE:
            return self._date(float(value), format)
        if format.kind is Kind.PERCENTAGE:
            return "", PERCENT_CELL
        text = self._number_text(value)
        if format.zeros and text.isdecimal():
            text = text.zfill(format.zeros)  # 00123, as it is shown
        elif not format.shows(text) and not format.hides(text):
            self._doubts.add(OTHER_NUMBERS, line=self.line)
        return NumberText(text), ""

    def _number_text(self, value: str) -> str:
        text = _number_text(value)
        if text is not value:
            self._odd_numbers += 1
            if self._odd_numbers > MOST_ODD_VALUES:
                raise InputProblem(MANY_ODD_VALUES % {"most": f"{MOST_ODD_VALUES:,}"})
        return text

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


def _names_of(styles: Iterable[int]) -> set[str]:
    """How cells name these styles. A cell without a name has the style 0."""
    names = {str(one) for one in styles}
    return names | {""} if "0" in names else names


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


def is_true(value: str | None) -> bool:
    return value in ("1", "true")


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
