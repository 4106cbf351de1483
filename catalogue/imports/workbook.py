"""Reading workbooks (XLSX) as rows of text, in bounded memory.

Values stay as they are in the file: a cell with text is that text. A cell that the spreadsheet made
a number may have lost leading zeros and its last digits, so its text is a `NumberText`.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import date, time, timedelta
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO

from django.utils.translation import gettext_noop
from openpyxl import load_workbook
from openpyxl.cell.read_only import EMPTY_CELL

from core.inputs import InputProblem

MAGIC = b"PK\x03\x04"  # of the ZIP archive that a workbook is
MAX_BYTES = 64 * 1024 * 1024
MAX_UNPACKED_BYTES = 320 * 1024 * 1024  # a million codes with serial number and PIN take 250 MB
MAX_FILES = 1000  # in the archive
MAX_ROWS = 1_048_576  # of a sheet, in every spreadsheet
# The library makes objects of a whole part, such as the styles: about 40 bytes for each byte.
MAX_WHOLE_BYTES = 4 * 1024 * 1024
MAX_ROW_BYTES = 64 * 1024
MAX_ELEMENTS = 10 * MAX_ROWS  # of a part; openpyxl writes 10 for a row with three texts
LOOKED_AT = 100  # rows of each other sheet, which must be empty
IN_ROWS = {  # the parts that the library reads row by row, and the end of a row or text
    re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE): re.compile(rb"</(\w+:)?row>"),
    re.compile(r"xl/sharedStrings\.xml", re.IGNORECASE): re.compile(rb"</(\w+:)?si>"),
}
# What is wrong with a workbook. Imports store it in English, and pages translate it.
UNREADABLE = gettext_noop("The workbook cannot be read. Save it again as XLSX, or as CSV.")
UNREADABLE_BELOW = gettext_noop("Below line %(line)s: %(problem)s")
TOO_LARGE = gettext_noop("The workbook is larger than %(size)s MB. Save it as CSV.")
TOO_LARGE_UNPACKED = gettext_noop("The workbook is too large when it is unpacked. Save it as CSV.")
SEVERAL_SHEETS = gettext_noop("The workbook has several sheets with values. Keep only one.")
WRONG_CELL = gettext_noop("column %(number)s has an error of the spreadsheet")
DATE_CELL = gettext_noop("column %(number)s has a date: format it as text")
WRONG_WORKBOOKS = (
    *(UNREADABLE, UNREADABLE_BELOW, TOO_LARGE, TOO_LARGE_UNPACKED, SEVERAL_SHEETS),
    *(WRONG_CELL, DATE_CELL),
)


class NumberText(str):
    """The text of a cell that is a number."""

    __slots__ = ()


TextRow = tuple[int, list[str] | str]


def is_workbook(start: bytes) -> bool:
    """Whether a file that begins like this is a workbook, and not a text."""
    return start.startswith(MAGIC)


def read_workbook(file: BinaryIO, *, columns: int) -> tuple[bytes, Iterator[TextRow], int]:
    """The bytes of a workbook, its rows, and the number of rows that it declares.

    Each row is its line and the texts of its first `columns` cells, or what is wrong with it.
    Rows without a value are left out. Raises InputProblem, also while the rows are read.
    """
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputProblem(TOO_LARGE % {"size": MAX_BYTES >> 20})
    _refuse_bombs(content)
    try:
        book = load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
        sheets = book.worksheets
        first = sheets[0]
        others = [sheet for sheet in sheets[1:] if _has_values(sheet, columns)]
    except Exception:  # the library raises whatever a broken file leads to
        raise InputProblem(UNREADABLE) from None
    if others:
        raise InputProblem(SEVERAL_SHEETS)
    return content, _rows(book, first, columns), max(1, min(first.max_row or MAX_ROWS, MAX_ROWS))


def _refuse_bombs(content: bytes) -> None:
    """Raises InputProblem if the archive unpacks to too much, or to too many objects. Python reads
    no more of a file than the archive declares."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            files = archive.infolist()
            too_large = (
                len(files) > MAX_FILES
                or sum(one.file_size for one in files) > MAX_UNPACKED_BYTES
                or any(
                    one.file_size > MAX_WHOLE_BYTES and not _has_short_rows(archive, one)
                    for one in files
                )
            )
    except Exception:  # zipfile raises whatever a broken file leads to
        raise InputProblem(UNREADABLE) from None
    if too_large:
        raise InputProblem(TOO_LARGE_UNPACKED)


def _has_short_rows(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """Whether a part is a sheet or the table of texts, has few elements, and a row ends in each of
    its blocks but the last."""
    row_end = next((end for name, end in IN_ROWS.items() if name.fullmatch(part.filename)), None)
    if row_end is None:
        return False
    elements, block = 0, b""
    with archive.open(part) as stream:
        while chunk := stream.read(MAX_ROW_BYTES):
            block = block[-1:] + chunk  # a tag may begin in one chunk and end in the next
            elements += chunk.count(b"<") - block.count(b"</")
            is_last = len(chunk) < MAX_ROW_BYTES
            if elements > MAX_ELEMENTS or not (is_last or row_end.search(block)):
                return False
    return True


def _has_values(sheet: Any, columns: int) -> bool:
    rows = sheet.iter_rows(max_row=MAX_ROWS, max_col=columns, values_only=True)
    return any(value is not None for row in islice(rows, LOOKED_AT) for value in row)


def _rows(book: Any, sheet: Any, columns: int) -> Iterator[TextRow]:
    with closing(book):
        rows = enumerate(sheet.iter_rows(max_row=MAX_ROWS, max_col=columns), start=1)
        line = 0
        while True:
            try:
                line, row = next((row for row in rows if not _is_empty(row[1])), (line, None))
                cells = row and [(one.data_type, one.value) for one in row]
            except Exception:  # as above
                raise InputProblem(
                    UNREADABLE_BELOW % {"line": line, "problem": UNREADABLE}
                ) from None
            if cells is None:
                return
            yield line, _texts(cells)


def _is_empty(row: Iterable[Any]) -> bool:
    return all(cell is EMPTY_CELL or cell.value is None for cell in row)


def _texts(cells: list[tuple[str, Any]]) -> list[str] | str:
    """The texts of a row, or what is wrong with it."""
    texts = []
    for number, (kind, value) in enumerate(cells, start=1):
        if kind == "e":
            return WRONG_CELL % {"number": number}
        if isinstance(value, date | time | timedelta):
            return DATE_CELL % {"number": number}
        texts.append(_text(value))
    return texts


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return NumberText(f"{value:.0f}")
    return NumberText(value) if isinstance(value, int | float) else str(value).strip()
