"""Amounts and days as people write them in the language of the reader: `1,234.50`, `1.234,50`.

Pages, emails and the PDF use these functions, and Django's filters of dates and numbers, which read
the same formats. What programs read is written without them.
"""

from datetime import date, datetime
from decimal import Decimal

from django.utils.formats import date_format

from core.json_output import money_text
from core.texts import with_separators


def local_amount(amount: Decimal, currency: str = "") -> str:
    """The amount with separators, exact, with at least two decimals; the currency behind it."""
    return f"{with_separators(f'{Decimal(money_text(amount)):,}')} {currency}".rstrip()


def local_number(number: int | Decimal | float, decimals: int = 0, sign: str = "-") -> str:
    """A number with separators, rounded to this many decimals. With the sign `+`, it has one."""
    return with_separators(f"{number:{sign},.{decimals}f}")


def local_day(day: date) -> str:
    """The day in numbers: `2026-11-28` in English, `28.11.2026` in German."""
    return date_format(day, "SHORT_DATE_FORMAT")


def local_moment(moment: datetime) -> str:
    """The day and the time in numbers."""
    return date_format(moment, "DATETIME_FORMAT")
