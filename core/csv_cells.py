"""Cells of CSV files that people open in a spreadsheet."""

from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet may run such a cell


def harmless(value: Any) -> str:
    """The value as text that a spreadsheet does not take for a formula; empty for None."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


class Echo:
    """A file for csv.writer: `writerow` then returns the line itself."""

    def write(self, line: str) -> str:
        return line
