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

from catalogue.code_file import Row
from catalogue.codes import Code
from catalogue.workbook import NumberText
from core.inputs import InputProblem

EXACT_DIGITS = 15  # of a number in a spreadsheet
FEW = 10  # entries: too few to tell a rule from chance
ROUNDED = re.compile(r"\d([.,]\d+)?[Ee]\+\d+|\d+\.0")


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
            f"The column {name} {doubt}"
            for name, column in self._columns.items()
            if (doubt := column.doubt())
        ]

    def refuse_doubts(self) -> None:
        """Raises InputProblem if there are any."""
        if doubts := self.doubts():
            advice = "Export the file again with this column as text, or say that it is right."
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
            cells = "1 cell" if self._numbers == 1 else f"{self._numbers:,} cells"
            return (
                f"has {cells} that the spreadsheet stores as numbers, from line"
                f" {self._first_number_line}: leading zeros and last digits may be lost."
            )
        if self._rounded:
            return (
                f"has {self._rounded:,} rounded number{'s' * (self._rounded != 1)} like"
                f" 1.23457E+15, the first in line {self._first_rounded_line}."
            )
        long = sum(count for length, count in self._lengths.items() if length > EXACT_DIGITS)
        if long >= FEW and self._ends_with_zero == long:
            return f"has {long:,} long numbers that all end with 0: their last digits are lost."
        if self._only_digits and self._entries >= FEW and not self._begins_with_zero:
            usual, count = self._lengths.most_common(1)[0]
            shorter = {length for length in self._lengths if length < usual}
            if shorter and usual == max(self._lengths) and 2 * count > self._entries:
                line = min(self._first_line[length] for length in shorter)
                return (
                    f"seems to have lost leading zeros: {self._entries - count:,} of"
                    f" {self._entries:,} numbers are shorter than {usual} digits,"
                    f" the first in line {line}."
                )
        return ""
