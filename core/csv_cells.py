"""Cells of CSV files that people open in a spreadsheet."""

import csv
from typing import Any

from core.texts import gettext_noop

# What is wrong with a CSV file. Imports store it in English, and pages translate it.
NOT_CLOSED = gettext_noop("a quotation mark in this line or above it is not closed")
NOT_DOUBLED = gettext_noop("a quotation mark inside a value must be written twice")
LINE_BREAK = gettext_noop("a value with a line break needs quotation marks around it")
LONG_CELL = gettext_noop("more than %(most)s characters in one value")
WRONG_CSV = (NOT_CLOSED, NOT_DOUBLED, LINE_BREAK, LONG_CELL)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet may run such a cell


def harmless(value: Any) -> str:
    """The value as text that a spreadsheet does not take for a formula; empty for None."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


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
