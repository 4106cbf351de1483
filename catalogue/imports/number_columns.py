"""Columns of numbers that a spreadsheet has changed.

A spreadsheet takes a column of digits for numbers. It drops leading zeros, writes long numbers like
1.23457E+15, and keeps 15 digits. Such a file has the right number of lines, and codes that do not
work. A workbook names the cells that are numbers; in a text they leave signs. The signs can be
wrong, so people may say that the file is right as it is.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields

from django.utils.translation import gettext_noop

from catalogue.imports.code_file import Row
from catalogue.imports.workbook import NumberText
from catalogue.stock.codes import Code
from core.inputs import InputProblem

EXACT_DIGITS = 15  # of a number in a spreadsheet
FEW = 10  # entries: too few to tell a rule from chance
ROUNDED = re.compile(r"\d([.,]\d+)?[Ee]\+\d+|\d+\.0")

# Doubts about a column. Imports store them in English, and pages translate them.
DOUBT = gettext_noop("The column %(name)s %(problem)s")
NUMBER_CELL = gettext_noop(
    "has 1 cell that the spreadsheet stores as numbers, from line %(line)s: leading zeros and last"
    " digits may be lost."
)
NUMBER_CELLS = gettext_noop(
    "has %(count)s cells that the spreadsheet stores as numbers, from line %(line)s: leading zeros"
    " and last digits may be lost."
)
ROUNDED_NUMBER = gettext_noop("has 1 rounded number like 1.23457E+15, the first in line %(line)s.")
ROUNDED_NUMBERS = gettext_noop(
    "has %(count)s rounded numbers like 1.23457E+15, the first in line %(line)s."
)
LAST_DIGITS = gettext_noop(
    "has %(count)s long numbers that all end with 0: their last digits are lost."
)
LEADING_ZEROS = gettext_noop(
    "seems to have lost leading zeros: %(count)s of %(all)s numbers are shorter than %(usual)s"
    " digits, the first in line %(line)s."
)
ADVICE = gettext_noop("Export the file again with this column as text, or say that it is right.")
DOUBTS = (
    *(NUMBER_CELL, NUMBER_CELLS, ROUNDED_NUMBER, ROUNDED_NUMBERS),
    *(LAST_DIGITS, LEADING_ZEROS, ADVICE, DOUBT),
)


class NumberColumns:
    """Collects signs of a spreadsheet while the rows of a file are read, in little memory."""

    def __init__(self) -> None:
        self._columns = {field.name: _Column() for field in fields(Code)}

    def watch(self, rows: Iterable[Row | str]) -> Iterator[Row | str]:
        """The rows, unchanged."""
        columns = [(name, column.add) for name, column in self._columns.items()]
        for row in rows:
            if not isinstance(row, str):
                line, code = row
                for name, add in columns:
                    if part := getattr(code, name):
                        add(line, part)
            yield row

    def doubts(self) -> list[str]:
        """A sentence for each column that a spreadsheet seems to have changed."""
        return [
            DOUBT % {"name": name, "problem": doubt}
            for name, column in self._columns.items()
            if (doubt := column.doubt())
        ]

    def refuse_doubts(self) -> None:
        """Raises InputProblem if there are any."""
        if doubts := self.doubts():
            advice = ADVICE
            raise InputProblem(" ".join([*doubts, advice]), problems=[*doubts, advice])


class _Column:
    def __init__(self) -> None:
        self._entries = 0
        self._numbers = 0  # cells of a workbook
        self._first_number_line = 0
        self._rounded = 0
        self._first_rounded_line = 0
        self._begins_with_zero = False
        self._only_digits = True
        self._ends_with_zero = 0  # of the numbers that are too long for a spreadsheet
        self._lengths = Counter[int]()
        self._first_line: dict[int, int] = {}  # by length

    def add(self, line: int, part: str) -> None:
        self._entries += 1
        if type(part) is NumberText:
            self._numbers += 1
            self._first_number_line = self._first_number_line or line
        if not part.isdecimal():
            self._only_digits = False
            if part[0].isdecimal() and ROUNDED.fullmatch(part):
                self._rounded += 1
                self._first_rounded_line = self._first_rounded_line or line
            return
        length = len(part)
        self._lengths[length] += 1
        self._first_line.setdefault(length, line)
        self._begins_with_zero |= part[0] == "0"
        self._ends_with_zero += length > EXACT_DIGITS and part[-1] == "0"

    def doubt(self) -> str:
        """What a spreadsheet seems to have done, or an empty text."""
        if self._numbers:
            template = NUMBER_CELL if self._numbers == 1 else NUMBER_CELLS
            return template % {"count": f"{self._numbers:,}", "line": self._first_number_line}
        if self._rounded:
            template = ROUNDED_NUMBER if self._rounded == 1 else ROUNDED_NUMBERS
            return template % {"count": f"{self._rounded:,}", "line": self._first_rounded_line}
        long = sum(count for length, count in self._lengths.items() if length > EXACT_DIGITS)
        if long >= FEW and self._ends_with_zero == long:
            return LAST_DIGITS % {"count": f"{long:,}"}
        if self._only_digits and self._entries >= FEW and not self._begins_with_zero:
            usual, count = self._lengths.most_common(1)[0]
            shorter = {length for length in self._lengths if length < usual}
            if shorter and usual == max(self._lengths) and 2 * count > self._entries:
                line = min(self._first_line[length] for length in shorter)
                return LEADING_ZEROS % {
                    "count": f"{self._entries - count:,}",
                    "all": f"{self._entries:,}",
                    "usual": usual,
                    "line": line,
                }
        return ""
