"""Reads tables that people upload or import: CSV, or a workbook (XLSX). One reader for all of them.

A file is read as what its author saw. What the reader cannot know is a problem, which refuses the
file, or a doubt, which a person must confirm. Nothing is left out, shifted or guessed. Messages
name the line, and never show the value of a column in `keys`, because codes are money.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from itertools import chain
from typing import Any, BinaryIO, NamedTuple

from django.utils.translation import gettext_noop

from core.files.cells import (
    ERROR_WORDS,
    MOST_ODD_VALUES,
    NOTHING_WORDS,
    ROUNDED,
    DateText,
    NumberText,
    first_invisible,
    first_word,
    foreign_scripts,
    is_marked,
    name_of,
    plain_text,
)
from core.files.csv_cells import EXACT_DIGITS, WRONG_CSV, read_rows
from core.files.doubts import Doubts
from core.files.kinds import BYTE_ORDER_MARKS, OLE, WRONG_KINDS, is_archive, refuse_other_kinds
from core.files.sheet_rows import MAX_ROWS, column_name
from core.files.workbook import MAX_BYTES, Workbook
from core.files.workbook_sentences import (
    DATE_CELL,
    LATE_LINES,
    MANY_ODD_VALUES,
    TOO_LARGE_UNPACKED,
)
from core.files.xml_parts import Limits
from core.inputs import InputProblem

DELIMITERS = ",;\t"
TOO_LONG = "\ud800\n"  # read in place of such a line; no file can contain it
NO_TEXT = re.compile("[\ud800-\udfff\ufffd]")  # a long line, or bytes in another encoding
SEPARATOR_LINE = re.compile(r'"?sep=([,;|\t])"?\s*', re.IGNORECASE)
QUOTED_PART = re.compile(r'"[^"]*"')
STARTS_BYTES = 4096
PIECE = 64 * 1024
USUAL = Limits(elements=2_500_000, unpacked_bytes=96 * 1024 * 1024)
SHOWN_NAME = 40
# SUSPECT matches a row that needs a second look. The row is in small letters, with a bar before
# each value. Each alternative begins with one fixed character, which keeps the search quick.
NOTHING_STARTS = (
    r"null|nil|none|nan|n/a|n\.a|undefined|unknown|empty|blank|keine?|tbd"
    r"|(?:(?:grand|sub)[ -]?)?total|sum|gesamt|err:"
)
ENDS = "|".join(
    rf"{sign}(?:\||$)" for sign in ("-", r"\?", r"\.", "_", "'", '"', "`", "\u2013", "\u2014")
)
SUSPECT = rf"""{ENDS}|\|(?:['"=`#]|\\n|[(<\[{{]?(?:{NOTHING_STARTS}))"""
SUSPECT_SEPARATOR = r"|;|\t|\|[^|]*\|"
LATIN = re.compile("[A-Za-z]")
SUSPECT_NUMBER = rf"|[0-9]{{{EXACT_DIGITS + 1}}}|[0-9]e[+\-0-9]|[0-9]\.0"

# What is wrong with a file or a line. Imports store it in English, and pages translate it.
WRONG_LINE = gettext_noop("line %(line)s: %(problem)s")
NO_TABLE = gettext_noop("The file is empty. The first line names the columns: %(known)s.")
EMPTY_SHEET = gettext_noop(
    "The first sheet that can be seen, %(sheet)s, is empty. The first line names the columns:"
    " %(known)s."
)
PROBABLE_NAME = gettext_noop(
    "The first line names the columns. The name of column %(column)s is unknown: is %(probable)s"
    " meant? Names are: %(known)s."
)
UNKNOWN_NAME = gettext_noop(
    "The first line names the columns. The name of column %(column)s is unknown. Names are:"
    " %(known)s."
)
UNKNOWN_WORD = gettext_noop(
    "The first line names the columns. The name %(name)s is unknown. Names are: %(known)s."
)
REPEATED_NAME = gettext_noop("The first line names the columns. It has the name %(name)s twice.")
MISSING_NAME = gettext_noop(
    "The first line names the columns. It has no heading %(name)s. Names are: %(known)s."
)
ONE_COLUMN = gettext_noop("1 column instead of %(expected)s")
WRONG_COLUMNS = gettext_noop("%(number)s columns instead of %(expected)s")
NAMES_AGAIN = gettext_noop("the names of the columns again: remove this line")
NO_NAME = gettext_noop("column %(column)s has a value, but no name in the first line")
UNPRINTABLE_PART = gettext_noop("%(name)s contains characters that cannot be printed")
INVISIBLE_PART = gettext_noop("%(name)s contains %(character)s, which shows nothing")
ERROR_WORD = gettext_noop("%(name)s is an error of a spreadsheet: %(word)s")
LONG_LINE = gettext_noop("longer than %(most)s characters")
NOT_UTF_8 = gettext_noop("not UTF-8: save the file as CSV UTF-8")
WRONG_TABLES = (
    *(NO_TABLE, EMPTY_SHEET, PROBABLE_NAME, UNKNOWN_NAME, UNKNOWN_WORD, REPEATED_NAME),
    MISSING_NAME,
    *(
        ONE_COLUMN,
        WRONG_COLUMNS,
        NAMES_AGAIN,
        NO_NAME,
        UNPRINTABLE_PART,
        INVISIBLE_PART,
        ERROR_WORD,
    ),
    *(LONG_LINE, NOT_UTF_8, *WRONG_KINDS, *WRONG_CSV),
)
# Doubts about cells. They are stored and translated, too.
NOTHING_WORD = gettext_noop(
    "%(name)s: the word %(word)s may stand for nothing. Such values: %(count)s, the first in line"
    " %(line)s."
)
MARKED_VALUE = gettext_noop(
    "%(name)s: values begin or end with a quotation mark or another mark of a spreadsheet:"
    " %(count)s, the first in line %(line)s."
)
FOREIGN_SCRIPT = gettext_noop(
    "%(name)s: letters or digits of another script (%(scripts)s) may look like Latin ones. Such"
    " values: %(count)s, the first in line %(line)s."
)
INVISIBLE_IN_NAME = gettext_noop(
    "%(name)s: values contain %(character)s, which shows nothing: %(count)s, the first in line"
    " %(line)s."
)
OTHER_SEPARATOR = gettext_noop(
    "%(name)s: values contain semicolons, tabs or vertical bars, but the first line has one name."
    " Such values: %(count)s, the first in line %(line)s."
)
LOST_DIGITS = gettext_noop(
    "%(name)s: numbers have more than 15 digits, and a spreadsheet keeps no more. Such values:"
    " %(count)s, the first in line %(line)s."
)
ROUNDED_NUMBERS = gettext_noop(
    "%(name)s: values look like rounded numbers such as 1.23457E+15: %(count)s, the first in line"
    " %(line)s."
)
TABLE_DOUBTS = (
    *(NOTHING_WORD, MARKED_VALUE, FOREIGN_SCRIPT, INVISIBLE_IN_NAME, OTHER_SEPARATOR),
    *(LOST_DIGITS, ROUNDED_NUMBERS),
)

Advance = Callable[[int], object]  # called with the number of bytes read since the last call


@dataclass(frozen=True)
class Columns:
    """The columns of a table. `keys` are compared letter by letter, such as codes; `names` are
    texts for people; `raw` are left as they are; `unread` may be in the file, and are not read.

    `exact` keep white space at their end. `dates` may be dates in a workbook, which are read like
    2026-12-31 or 2026-12-31 18:30:00. `are_secret`: the keys are codes, so letters of another
    script are doubted even if they are not mixed. `short_rows`: a row of CSV may end before the
    last column. `line_length`: the most characters of a line of CSV. `most`: the largest workbook.
    """

    known: Sequence[str]
    required: Sequence[str]
    keys: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    raw: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()
    dates: frozenset[str] = frozenset()
    are_secret: bool = False
    short_rows: bool = False
    line_length: int = 16 * 1024
    most: Limits = USUAL


class Row(NamedTuple):
    """A row of a table: its last line, its texts by the table's names, and what is wrong with it,
    by name; the name of the whole row is empty. A short row of CSV lacks its last texts."""

    line: int
    cells: list[str]
    problems: dict[str, str]


@dataclass
class Table:
    """A table that is read once. `names` are those of its first line; `doubts` is complete when all
    rows were read. `sheet` is the name of the sheet; empty for a text."""

    names: list[str]
    rows: Iterator[Row]
    doubts: Doubts
    sheet: str = ""


def open_table(
    file: BinaryIO,
    columns: Columns,
    *,
    advance: Advance = lambda _size: None,
    watch: Callable[[bytes], object] = lambda _part: None,
) -> Table:
    """The table in a file. `watch` is called with each part of the file, in order.

    Raises InputProblem, also while the rows are read.
    """
    buffered = file if isinstance(file, BufferedReader) else BufferedReader(_Raw(file))
    start = buffered.peek(STARTS_BYTES)[:STARTS_BYTES]
    doubts = Doubts()
    if is_archive(start):
        book = Workbook(
            buffered,
            doubts,
            most=columns.most,
            reads_dates=bool(columns.dates),
            advance=advance,
        )
        watch(book.content)
        rows = _sheet_rows(book, columns.most, advance)
        return _read_header(rows, columns, doubts, sheet=book.sheet)
    refuse_other_kinds(start, buffered.read(MAX_BYTES) if start.startswith(OLE) else b"")
    lines = _read_lines(
        BufferedReader(_Watched(buffered, advance, watch), PIECE), start, columns.line_length
    )
    return _read_header(_text_rows(lines), columns, doubts)


def read_bytes(content: bytes, columns: Columns) -> Table:
    """`open_table` for a whole file."""
    return open_table(BytesIO(content), columns)


class _Raw(RawIOBase):
    """A file as BufferedReader needs it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class _Watched(RawIOBase):
    """A file that tells what was read of it."""

    def __init__(
        self, file: BufferedReader, advance: Advance, watch: Callable[[bytes], object]
    ) -> None:
        self._file, self._advance, self._watch = file, advance, watch

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._file.read(len(buffer))
        buffer[: len(part)] = part
        self._watch(part)
        self._advance(len(part))
        return len(part)


def _read_lines(file: BufferedReader, start: bytes, most: int) -> Iterator[str]:
    """The lines. TOO_LONG is in place of a line that is too long, and a surrogate in place of a
    byte that is not UTF-8."""
    is_wide = start.startswith(BYTE_ORDER_MARKS)
    encoding, errors = ("utf-16", "replace") if is_wide else ("utf-8-sig", "surrogateescape")
    # Old programs end a line with a carriage return alone.
    beginning = start.decode(encoding, errors)
    newline = "\n" if "\n" in beginning or "\r" not in beginning else "\r"
    text = TextIOWrapper(file, encoding, errors, newline=newline)
    is_start = True
    while line := text.readline(most + 1):
        is_end, is_long = line.endswith(newline), len(line) > most
        if is_start:
            yield TOO_LONG if is_long else line
        is_start = is_end or not is_long


def _text_rows(lines: Iterator[str]) -> Iterator[tuple[int, Sequence[str] | str, list[str]]]:
    """The line, the cells or what is wrong, and no other problems, of each row."""
    skipped, first, delimiter = 0, next(lines, ""), ""
    if found := SEPARATOR_LINE.fullmatch(first):
        delimiter, skipped, first = found[1], 1, next(lines, "")
    while first and not first.strip():
        skipped, first = skipped + 1, next(lines, "")
    if not first:
        return
    plain = QUOTED_PART.sub("", first)
    delimiter = delimiter or max(DELIMITERS, key=plain.count)
    for line, row in read_rows(chain([first], lines), delimiter):
        if line > MAX_ROWS:
            raise InputProblem(LATE_LINES % {"most": f"{MAX_ROWS:,}"})
        if row and not (len(row) == 1 and not isinstance(row, str) and not row[0].strip()):
            yield line + skipped, row, []


def _sheet_rows(
    book: Workbook, most: Limits, advance: Advance
) -> Iterator[tuple[int, Sequence[str] | str, list[str]]]:
    unread, share = len(book.content), len(book.content) / max(1, book.number_of_bytes)
    places = 0
    for (line, texts, problems), size in book.rows():
        if size:
            done = min(unread, int(size * share))
            advance(done)
            unread -= done
        width = next(reversed(texts), -1) + 1
        places += width
        if places > most.elements:  # rows with a value far to the right
            raise InputProblem(TOO_LARGE_UNPACKED)
        if len(texts) == width:
            row = list(texts.values())
        else:
            row = [texts.get(place, "") for place in range(width)]
        yield line, row, problems
    advance(unread)


def _read_header(
    rows: Iterator[tuple[int, Sequence[str] | str, list[str]]],
    columns: Columns,
    doubts: Doubts,
    *,
    sheet: str = "",
) -> Table:
    is_sheet, known = bool(sheet), ", ".join(columns.known)
    for line, row, problems in rows:
        if isinstance(row, str) or problems:
            problem = row if isinstance(row, str) else problems[0]
            raise InputProblem(WRONG_LINE % {"line": line, "problem": problem})
        if problem := text_problem("".join(row), columns.line_length):
            raise InputProblem(WRONG_LINE % {"line": line, "problem": problem})
        if any(cell.strip() for cell in row):
            break
    else:
        raise InputProblem(
            EMPTY_SHEET % {"sheet": sheet, "known": known}
            if is_sheet
            else NO_TABLE % {"known": known}
        )
    header = _header_of(row)
    for place, name in enumerate(header):
        if name and name not in columns.known and name not in columns.unread:
            raise InputProblem(_unknown_name(name, place, columns))
        if name and header.count(name) > 1:
            raise InputProblem(REPEATED_NAME % {"name": name})
    for name in columns.required:
        if name not in header:
            raise InputProblem(MISSING_NAME % {"name": name, "known": known})
    names = [name for name in header if name in columns.known]
    table = Table(names=names, rows=iter(()), doubts=doubts, sheet=sheet)
    first = next(cell.strip().lower() for cell in row if cell.strip())
    reader = _Reader(columns, header, names, doubts, first_name=first, is_text=not is_sheet)
    table.rows = reader.read(rows)
    return table


def _unknown_name(name: str, place: int, columns: Columns) -> str:
    """The sentence about a name. The first line of a file of codes may be a code."""
    values = {"column": column_name(place), "known": ", ".join(columns.known)}
    if probable := get_close_matches(name, columns.known, 1):
        return PROBABLE_NAME % {**values, "probable": probable[0]}
    if columns.are_secret:
        return UNKNOWN_NAME % values
    shown = "".join(filter(str.isprintable, name))[:SHOWN_NAME]
    return UNKNOWN_WORD % {**values, "name": shown}


def _header_of(row: Sequence[str]) -> list[str]:
    """The names in a row, without the blank ones at its end."""
    header = [_column_name(cell) for cell in row]
    while header and not header[-1]:
        header.pop()
    return header


def _column_name(cell: str) -> str:
    return re.sub(r"[\s\-]+", "_", plain_text(cell.strip()).lower())


def text_problem(text: str, most: int) -> str:
    """The mistake in the bytes that became this text; empty if there is none."""
    if text.isascii() or not NO_TEXT.search(text):
        return ""
    return LONG_LINE % {"most": f"{most:,}"} if TOO_LONG[0] in text else NOT_UTF_8


class _Reader:
    """Makes rows of cells below names."""

    def __init__(
        self,
        columns: Columns,
        header: list[str],
        names: list[str],
        doubts: Doubts,
        *,
        first_name: str,
        is_text: bool,
    ) -> None:
        self._columns, self._names, self._doubts = columns, names, doubts
        self._header, self._first_name = header, first_name  # in small letters, as it is written
        self._width = len(header)
        self._places = [header.index(name) for name in names]
        self._exact = [place for place, name in enumerate(header) if name in columns.exact]
        self._no_dates = [place for place, name in enumerate(header) if name not in columns.dates]
        self._nameless = [place for place, name in enumerate(header) if not name]
        self._least = max(self._places) + 1 if is_text and not columns.short_rows else 0
        self._is_text = is_text
        self._one_name = is_text and self._width == 1
        suspect = SUSPECT + SUSPECT_SEPARATOR if self._one_name else SUSPECT
        suspect += rf"|\|{re.escape(first_name)}(?:\||$)"
        if not columns.are_secret:  # the numbers among codes are looked at as a whole
            suspect += SUSPECT_NUMBER
        self._is_suspect = re.compile(suspect).search
        self._odd_values = 0
        self._is_plain = not self._exact and not columns.dates
        self._is_whole = self._places == list(range(self._width))

    def read(self, rows: Iterator[tuple[int, Sequence[str] | str, list[str]]]) -> Iterator[Row]:
        """The rows with a value or a mistake."""
        width, is_plain, is_suspect = self._width, self._is_plain, self._is_suspect
        places, is_text, nameless = self._places, self._is_text, self._nameless
        is_whole = self._is_whole
        for line, row, problems in rows:
            if isinstance(row, str):
                yield Row(line, [], {"": row})
                continue
            if is_text:
                cells = [cell.strip() for cell in row]
            else:
                cells = [cell if type(cell) is NumberText else cell.strip() for cell in row]
                cells += [""] * (width - len(cells))
            if len(cells) == width and is_plain and not problems:
                joined = "|" + "|".join(cells)
                if joined.isascii() and joined.isprintable() and not is_suspect(joined.lower()):
                    if nameless and any(cells[place] for place in nameless):
                        yield Row(line, [], {"": self._row_problem(cells, problems)})
                    elif len(joined) > width:  # else all are empty
                        named = cells if is_whole else [cells[place] for place in places]
                        yield Row(line, named, {})
                    continue
            if not any(cells) and not problems:
                continue
            found = self._row_problem(cells, problems) or self._date_problem(row)
            if found:
                yield Row(line, [], {"": found})
                continue
            for place in self._exact:
                if place < len(row) and cells[place]:
                    cells[place] = row[place]
            yield self._look(line, [cells[place] for place in places if place < len(cells)])

    def _row_problem(self, cells: list[str], problems: list[str]) -> str:
        if problems:
            return problems[0]
        if problem := text_problem("".join(cells), self._columns.line_length):
            return problem
        if self._first_name in map(str.lower, cells) and _header_of(cells) == self._header:
            return NAMES_AGAIN
        if len(cells) > self._width:
            last = max((place for place, cell in enumerate(cells, start=1) if cell), default=0)
            if last > self._width:
                return WRONG_COLUMNS % {"number": last, "expected": self._width}
        if len(cells) < self._least:
            template = ONE_COLUMN if len(cells) == 1 else WRONG_COLUMNS
            return template % {"number": len(cells), "expected": self._least}
        for place in self._nameless:
            if place < len(cells) and cells[place]:
                return NO_NAME % {"column": column_name(place)}
        return ""

    def _date_problem(self, row: Sequence[str]) -> str:
        for place in self._no_dates if self._columns.dates else ():
            if place < len(row) and isinstance(row[place], DateText):
                return DATE_CELL % {"column": column_name(place)}
        return ""

    def _look(self, line: int, cells: list[str]) -> Row:
        """The row after a look at each of its cells."""
        problems: dict[str, str] = {}
        columns = self._columns
        for place, (name, found) in enumerate(zip(self._names, list(cells), strict=False)):
            if not found or name in columns.raw:
                continue
            is_key, is_name = name in columns.keys, name in columns.names
            if is_key and not columns.are_secret:
                self._doubt_number(line, name, found)
            if isinstance(found, NumberText):
                continue
            is_suspect = self._is_suspect("|" + found.lower())
            if not is_suspect and found.isascii() and found.isprintable():
                continue
            self._odd_values += 1
            if self._odd_values > MOST_ODD_VALUES:
                raise InputProblem(MANY_ODD_VALUES % {"most": f"{MOST_ODD_VALUES:,}"})
            text = cells[place] = plain_text(found, is_name=is_name)
            hidden = first_invisible(text, spaces=is_key)
            if is_suspect and ERROR_WORDS.fullmatch(text):
                problems[name] = ERROR_WORD % {"name": name, "word": text[:SHOWN_NAME]}
            elif hidden and is_name:
                character = name_of(hidden)
                self._doubts.add(INVISIBLE_IN_NAME, name=name, line=line, character=character)
            elif hidden and unicodedata.name(hidden, ""):
                problems[name] = INVISIBLE_PART % {"name": name, "character": name_of(hidden)}
            elif hidden:
                problems[name] = UNPRINTABLE_PART % {"name": name}
            elif is_suspect and (is_key or is_name) and NOTHING_WORDS.fullmatch(text):
                self._doubts.add(NOTHING_WORD, name=name, line=line, word=first_word(text))
            elif is_key:
                self._doubt_key(line, name, text)
        return Row(line, cells, problems)

    def _doubt_number(self, line: int, name: str, text: str) -> None:
        is_number = isinstance(text, NumberText)
        digits = text if is_number or text.isdecimal() else ""
        if len(digits) > EXACT_DIGITS and (is_number or not digits[EXACT_DIGITS:].strip("0")):
            self._doubts.add(LOST_DIGITS, name=name, line=line)
        elif not is_number and ROUNDED.fullmatch(text):
            self._doubts.add(ROUNDED_NUMBERS, name=name, line=line)

    def _doubt_key(self, line: int, name: str, text: str) -> None:
        if is_marked(text):
            self._doubts.add(MARKED_VALUE, name=name, line=line)
        scripts = [] if text.isascii() else foreign_scripts(text)
        is_mixed = len(scripts) > 1 or LATIN.search(text) is not None
        if scripts and (is_mixed or self._columns.are_secret):
            self._doubts.add(FOREIGN_SCRIPT, name=name, line=line, scripts=", ".join(scripts))
        if self._one_name and re.search(r"[;\t|]", text):
            self._doubts.add(OTHER_SEPARATOR, name=name, line=line)
