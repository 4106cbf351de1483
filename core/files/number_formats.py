"""Meanings of the number formats of spreadsheets: a date, a percentage, fewer decimals, nothing."""

import re
from enum import Enum
from typing import NamedTuple

MAX_LENGTH = 255  # of a format, in every spreadsheet
# What every spreadsheet knows by number. The dates, times and percentages need no code here.
BUILT_IN = {
    **{1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??"},
    **dict.fromkeys((5, 6, 37, 38, 41, 42), "#,##0"),
    **dict.fromkeys((7, 8, 39, 40, 43, 44), "#,##0.00"),
    48: "##0.0E+0",
}
DATES = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}
DAY_AND_HOUR = 22
DAYS = {14, 15, DAY_AND_HOUR}  # with day, month and year
PERCENTAGES = {9, 10}
# Texts and single characters; the width of a character, a filler, and colours. `[h]` is a time.
TEXTS = re.compile(r'"([^"]*)"|\\(.)', re.DOTALL)
DECORATION = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^]]*\]', re.DOTALL)
CONDITION = re.compile(r"\[[<>=]")
EXPONENT = re.compile("e[+-]", re.IGNORECASE)
PLACES = re.compile("[0#?]")
# Digits before and after the point. A comma behind the last of them leaves thousands out.
SHAPE = re.compile(r"[^0#?.,]*([0#?][0#?,\s]*)?(?:\.([0#?]*))?[^0#?.,]*")


class Kind(Enum):
    """The kind of number in a cell."""

    NUMBER = "number"
    DATE = "date"
    PERCENTAGE = "percentage"


class _Limit(NamedTuple):
    """The longest number that is shown as it is."""

    decimals: float
    digits: float


ALL = _Limit(float("inf"), float("inf"))
NONE = _Limit(-1, 0)


class NumberFormat:
    """A format: `number` is one that every spreadsheet knows, unless the file gives the `code`.
    `is_unseen`: the letters have the colour of their cell."""

    def __init__(self, number: int, code: str | None = None, *, is_unseen: bool = False) -> None:
        is_built_in, code = code is None, BUILT_IN.get(number, "") if code is None else code
        # With digits to fill a whole number up with zeros, as it is shown.
        self.zeros = len(code) if set(code) == {"0"} and len(code) <= MAX_LENGTH else 0
        every = _sections(code) if len(code) <= MAX_LENGTH else []
        sections = every[:3]
        plain = [DECORATION.sub("", one).lower() for one in every]
        self.kind = Kind.NUMBER
        if (is_built_in and number in PERCENTAGES) or any("%" in one for one in plain[:3]):
            self.kind = Kind.PERCENTAGE
        elif (is_built_in and number in DATES) or any(map(_is_date, plain[:3])):
            self.kind = Kind.DATE
        first = plain[0] if plain else ""
        self.shows_day = (is_built_in and number in DAYS) or {"d", "y"} <= set(first)
        self.shows_hour = (is_built_in and number == DAY_AND_HOUR) or "h" in first
        limits = [ALL] if not code else list(map(_limit, sections)) or [NONE]
        has_conditions = CONDITION.search(code) is not None
        if has_conditions:
            limits = [min(limits)]
        # Of numbers above zero, and below it.
        self._above, self._below = limits[0], limits[min(1, len(limits) - 1)]
        # Whether each whole number above zero is shown as it is.
        self.shows_whole = (
            not is_unseen
            and self.kind is Kind.NUMBER
            and self.zeros <= 1
            and (self._above.decimals >= 0 and self._above.digits == ALL.digits)
        )

        seen = [DECORATION.sub(_gap, one).strip() for one in sections] if code else []
        self._hides_above = self._hides_below = self._hides_zero = is_unseen
        if has_conditions:
            self._hides_zero |= not all(seen)
        elif seen:
            self._hides_above |= not seen[0]
            self._hides_below |= not seen[min(1, len(seen) - 1)]
            self._hides_zero |= not seen[2 if len(seen) > 2 else 0].strip("#?, ")
        text = plain[3] if len(plain) > 3 else "@"
        self.hides_text = is_unseen or not ("@" in text or "general" in text)
        self.may_hide = (
            self.hides_text or self._hides_above or self._hides_below or self._hides_zero
        )

    def hides(self, text: str) -> bool:
        """Whether the format shows nothing of this plain number."""
        if not text.strip("-0."):
            return self._hides_zero
        return self._hides_below if text[:1] == "-" else self._hides_above

    def shows(self, text: str) -> bool:
        """Whether it shows this plain number as it is, with all its decimals."""
        limit = self._below if text[:1] == "-" else self._above
        if limit is ALL:
            return True
        digits = text.replace(".", "").strip("-0")
        return not digits or (
            len(text.partition(".")[2]) <= limit.decimals and len(digits) <= limit.digits
        )


def _sections(code: str) -> list[str]:
    """The sections of a format, in this order: numbers above zero, below zero, zero, and texts."""
    return DECORATION.sub(lambda found: found[0].replace(";", "."), code).split(";")[:4]


def _is_date(plain: str) -> bool:
    return "general" not in plain and re.search("[dmyhs]", plain) is not None


def _limit(section: str) -> _Limit:
    texts = "".join(map("".join, TEXTS.findall(section)))
    plain = DECORATION.sub(_gap, section)
    if "general" in plain.lower() or plain.strip() == "@":
        return ALL
    if re.search(r"\d", texts):  # "0"0 shows 5 as 05
        return NONE
    if "/" in plain:
        return _Limit(0, ALL.digits)
    if EXPONENT.search(plain):
        return _Limit(ALL.decimals, len(PLACES.findall(EXPONENT.split(plain)[0])))
    found = SHAPE.fullmatch(plain)
    if not found or not found[1] or found[1].rstrip().endswith(",") or re.search("[1-9]", plain):
        return NONE
    return _Limit(len(found[2] or ""), ALL.digits)


def _gap(found: re.Match[str]) -> str:
    """A sign in place of a text, so that 000"-"00 is not 00000."""
    text = found[0]
    return " " if text[0] in "_*[" or not text.strip('\\" \xa0\u202f') else "~"
