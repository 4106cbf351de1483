"""Cells of CSV files that people open in a spreadsheet."""

import csv
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

from core.texts import gettext_noop

# What is wrong with a CSV file. Imports store it in English, and pages translate it.
NOT_CLOSED = gettext_noop("a quotation mark in this line or above it is not closed")
NOT_DOUBLED = gettext_noop("a quotation mark inside a value must be written twice")
LINE_BREAK = gettext_noop("a value with a line break needs quotation marks around it")
LONG_CELL = gettext_noop("more than %(most)s characters in one value")
WRONG_CSV = (NOT_CLOSED, NOT_DOUBLED, LINE_BREAK, LONG_CELL)
MAX_ROW_LENGTH = 2 * csv.field_size_limit()
MAX_READ_AGAIN = 16 * 1024 * 1024  # characters of one file
EXACT_DIGITS = 15  # of a number in a spreadsheet, which computes with floats
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet may run such a cell
# In many languages, a spreadsheet begins a cell at each semicolon. It then ignores quotation marks
# that do not begin a cell, so a semicolon or a line break between them begins a cell, too.
LATER_CELL = re.compile(r"([;\t\r\n][\s\"]*)([=+\-@]?)")  # linear: it always matches


def harmless(value: Any) -> str:
    """The value as text that a spreadsheet does not take for a formula; empty for None."""
    text = "" if value is None else str(value)
    if text.startswith(FORMULA_STARTS):
        return f"'{text[0]}" + LATER_CELL.sub(_without_formula, text[1:])
    return LATER_CELL.sub(_without_formula, text)


def _without_formula(cell: re.Match[str]) -> str:
    return f"{cell[1]}'{cell[2]}" if cell[2] else cell[1]


def read_rows(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Pairs of a line number and a row, or what is wrong. The number is that of the row's last
    line, or of the first line at fault.

    After a mistake, reading goes on with the next line. A quotation mark that is not closed takes
    lines below it into its value: they are read again, up to MAX_READ_AGAIN characters of a file,
    which limits the time that a hostile file takes.
    """
    number = length = 0
    row_lines: list[str] = []  # of the row that is being read
    again, left = deque[str](), MAX_READ_AGAIN

    def next_lines() -> Iterator[str]:
        nonlocal number, length
        while length <= MAX_ROW_LENGTH:
            line = again.popleft() if again else next(lines, "")
            if not line:
                return
            number += 1
            length += len(line)
            row_lines.append(line)
            yield line

    while True:
        try:
            for row in csv.reader(next_lines(), delimiter=delimiter, strict=True):
                yield number, row
                row_lines.clear()
                length = 0
        except csv.Error as error:
            first = number - len(row_lines) + 1
            yield first, csv_problem(error) if len(row_lines) == 1 else NOT_CLOSED
            if left > 0:
                left -= length
                again.extendleft(reversed(row_lines[1:]))
                number = first
            row_lines.clear()
            length = 0
        else:
            return


def csv_problem(error: csv.Error) -> str:
    """Words for people in place of those of Python's reader, such as `unexpected end of data`."""
    text = str(error)
    if "unexpected end" in text:
        return NOT_CLOSED
    if "new-line" in text:
        return LINE_BREAK
    if "field limit" in text:
        return LONG_CELL % {"most": f"{csv.field_size_limit():,}"}
    return NOT_DOUBLED


class Echo:
    """A file for csv.writer: `writerow` then returns the line itself."""

    def write(self, line: str) -> str:
        return line
