"""Columns of numbers that a spreadsheet has changed.

A spreadsheet takes a column of digits for numbers. It drops leading zeros, writes long numbers like
1.23457E+15, and keeps 15 digits. Such a file has the right number of lines, and codes that do not
work. A workbook names the cells that are numbers; in a text they leave signs. The signs can be
wrong, so people may say that the file is right as it is.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import compress, islice
from operator import ne, not_

from django.utils.translation import gettext_noop

from catalogue.imports.code_file import Row
from catalogue.stock.codes import Code
from core.files.cells import ROUNDED, NumberText
from core.files.csv_cells import EXACT_DIGITS

ROWS_AT_ONCE = 1000
SHOWN = 5  # lengths
DIGIT = re.compile(r"\d")
LIKE_ROUNDED = re.compile(r"\d[Ee][+-]?\d|\d\.0")  # part of what ROUNDED matches
FEW = 10  # entries: too few to tell a rule from chance
RARE = 20  # one in so many values is unlike the others
FEWEST = 3  # entries: two have the same length, and one has another

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
OTHER_LENGTH = gettext_noop(
    "has values of another length: %(count)s of %(all)s do not have %(usual)s characters, the first"
    " in line %(line)s."
)
OTHER_ALPHABET = gettext_noop(
    "has values of another alphabet: %(count)s of %(all)s contain %(problem)s, the first in line"
    " %(line)s."
)
NO_VALUE = gettext_noop("is empty in some lines: %(count)s of %(all)s have no value.")
KINDS = {
    "capital": gettext_noop("capital letters"),
    "small": gettext_noop("small letters"),
    "digit": gettext_noop("digits"),
    "sign": gettext_noop("other signs"),
}
# Whether each of some values contains a character of this kind.
HAS_KIND: dict[str, Callable[[list[str]], Iterable[object]]] = {
    "capital": lambda parts: map(ne, parts, map(str.lower, parts)),
    "small": lambda parts: map(ne, parts, map(str.upper, parts)),
    "digit": lambda parts: map(DIGIT.search, parts),
    "sign": lambda parts: map(not_, map(str.isalnum, parts)),
}
DOUBTS = (
    *(NUMBER_CELL, NUMBER_CELLS, ROUNDED_NUMBER, ROUNDED_NUMBERS),
    *(LAST_DIGITS, LEADING_ZEROS, OTHER_LENGTH, OTHER_ALPHABET, NO_VALUE, DOUBT),
    *KINDS.values(),
)


class NumberColumns:
    """Collects signs of a spreadsheet while the rows of a file are read, in little memory."""

    def __init__(self) -> None:
        self._columns = {field.name: _Column() for field in fields(Code)}

    def watch(self, rows: Iterable[Row | str]) -> Iterator[Row | str]:
        """The rows, unchanged."""
        remaining = iter(rows)
        while batch := list(islice(remaining, ROWS_AT_ONCE)):
            good = [row for row in batch if not isinstance(row, str)]
            lines = [line for line, _code in good]
            for name, column in self._columns.items():
                parts = [getattr(code, name) for _line, code in good]
                if all(parts):
                    column.add(lines, parts)
                else:
                    column.add(list(compress(lines, parts)), list(filter(None, parts)))
            yield from batch

    def doubts(self) -> list[str]:
        """A sentence for each column that a spreadsheet seems to have changed, and for each that
        has values unlike all others."""
        all_rows = self._columns["code"].entries
        return [
            DOUBT % {"name": name, "problem": doubt}
            for name, column in self._columns.items()
            for doubt in column.doubts(all_rows)
        ]

    def shapes(self) -> dict[str, dict[str, int]]:
        """How many codes have each length and each kind of character."""
        return self._columns["code"].shapes()


class _Column:
    def __init__(self) -> None:
        self.entries = 0
        self._numbers = 0  # cells of a workbook
        self._first_number_line = 0
        self._rounded = 0
        self._first_rounded_line = 0
        self._begins_with_zero = False
        self._only_digits = True
        self._ends_with_zero = 0  # of the numbers that are too long for a spreadsheet
        self._numeric = Counter[int]()  # by length
        self._lengths = Counter[int]()
        self._kinds = Counter[str]()
        self._first_of_kind: dict[str, int] = {}
        self._first_line: dict[int, int] = {}  # by length

    def add(self, lines: list[int], parts: list[str]) -> None:
        """Counts the values of these lines. They are looked at together, which is three times as
        fast as one by one."""
        if not parts:
            return
        self.entries += len(parts)
        lengths = list(map(len, parts))
        self._lengths.update(lengths)
        for length in set(lengths) - self._first_line.keys():
            self._first_line[length] = lines[lengths.index(length)]
        whole = "".join(parts)
        for kind, has_kind in HAS_KIND.items():
            if any(has_kind([whole])):
                found = list(map(bool, has_kind(parts)))
                self._kinds[kind] += found.count(True)
                self._first_of_kind.setdefault(kind, lines[found.index(True)])
        if NumberText in set(map(type, parts)):
            found = [type(part) is NumberText for part in parts]
            self._numbers += found.count(True)
            self._first_number_line = self._first_number_line or lines[found.index(True)]
        if LIKE_ROUNDED.search(" ".join(parts)):
            found = [ROUNDED.fullmatch(part) is not None for part in parts]
            if count := found.count(True):
                self._rounded += count
                self._first_rounded_line = self._first_rounded_line or lines[found.index(True)]
        numbers = list(filter(str.isdecimal, parts))
        self._only_digits &= len(numbers) == len(parts)
        if numbers:
            self._numeric.update(map(len, numbers))
            self._begins_with_zero |= min(numbers).startswith("0")
            if max(lengths) > EXACT_DIGITS:
                self._ends_with_zero += sum(
                    len(one) > EXACT_DIGITS and one.endswith("0") for one in numbers
                )

    def shapes(self) -> dict[str, dict[str, int]]:
        """How many values have each length and each kind of character."""
        lengths = {str(length): count for length, count in self._lengths.most_common(SHOWN)}
        return {"lengths": lengths, "alphabets": dict(self._kinds.most_common())}

    def doubts(self, all_rows: int) -> list[str]:
        """The doubts about the column. `all_rows` is the number of codes."""
        found = [one for one in (self._doubt(),) if one]
        if not self.entries:
            return found
        everything = {"all": f"{self.entries:,}"}
        usual, count = self._lengths.most_common(1)[0]
        others = self.entries - count
        if not found and _is_rare(others, self.entries, single_of=FEWEST):
            line = min(line for length, line in self._first_line.items() if length != usual)
            values = {"count": f"{others:,}", "usual": usual, "line": line}
            found.append(OTHER_LENGTH % {**values, **everything})
        for kind, words in KINDS.items():
            if 0 < self._kinds[kind] * RARE <= self.entries:
                values = {"count": f"{self._kinds[kind]:,}", "line": self._first_of_kind[kind]}
                found.append(OTHER_ALPHABET % {"problem": words, **values, **everything})
        if _is_rare(all_rows - self.entries, all_rows):
            values = {"count": f"{all_rows - self.entries:,}", "all": f"{all_rows:,}"}
            found.append(NO_VALUE % values)
        return found

    def _doubt(self) -> str:
        """The change that a spreadsheet seems to have made, or an empty text."""
        if self._numbers:
            template = NUMBER_CELL if self._numbers == 1 else NUMBER_CELLS
            return template % {"count": f"{self._numbers:,}", "line": self._first_number_line}
        if self._rounded:
            template = ROUNDED_NUMBER if self._rounded == 1 else ROUNDED_NUMBERS
            return template % {"count": f"{self._rounded:,}", "line": self._first_rounded_line}
        long = sum(count for length, count in self._numeric.items() if length > EXACT_DIGITS)
        if long >= FEW and self._ends_with_zero == long:
            return LAST_DIGITS % {"count": f"{long:,}"}
        if self._only_digits and self.entries >= FEW and not self._begins_with_zero:
            usual, count = self._numeric.most_common(1)[0]
            shorter = {length for length in self._numeric if length < usual}
            if shorter and usual == max(self._numeric) and 2 * count > self.entries:
                line = min(self._first_line[length] for length in shorter)
                return LEADING_ZEROS % {
                    "count": f"{self.entries - count:,}",
                    "all": f"{self.entries:,}",
                    "usual": usual,
                    "line": line,
                }
        return ""


def _is_rare(count: int, entries: int, *, single_of: int = FEW) -> bool:
    """Whether so few entries differ from the others that they may be mistakes. A single one may be
    from `single_of` entries on."""
    return 0 < count * RARE <= entries or (count == 1 and entries >= single_of)
