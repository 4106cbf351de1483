"""Amounts and days as people write them in the language of the reader: `1,234.50`, `1.234,50`."""

from datetime import date, datetime
from decimal import Decimal
from functools import cache

from django.utils.dateformat import format as format_date
from django.utils.formats import iter_format_modules
from django.utils.translation import get_language

from core.json_output import money_text

ISO_DAY, TIME = "Y-m-d", "H:i:s"


def local_amount(amount: Decimal, currency: str = "") -> str:
    """The amount with separators, exact, with at least two decimals; the currency behind it."""
    whole, _, decimals = f"{Decimal(money_text(amount)):,}".partition(".")
    thousands, point, _day = _formats_of(get_language() or "en")
    return f"{whole.replace(',', thousands)}{point}{decimals} {currency}".rstrip()


def local_day(day: date) -> str:
    """The day in numbers: `2026-11-28` in English, `28.11.2026` in German."""
    return format_date(day, _formats_of(get_language() or "en")[2])


def local_moment(moment: datetime) -> str:
    """The day and the time in numbers."""
    return f"{local_day(moment)} {format_date(moment, TIME)}"


@cache
def _formats_of(language: str) -> tuple[str, str, str]:
    """The separators of thousands and of decimals, and the format of a day.

    They are those of Django for the language. Only English has days as in the API: 11/12 is read in
    two ways.
    """
    if language.startswith("en"):
        return ",", ".", ISO_DAY
    # Without the formats of the settings, which are for input and alike in all languages.
    formats = next(iter_format_modules(language, []), None)
    names = {"THOUSAND_SEPARATOR": ",", "DECIMAL_SEPARATOR": ".", "SHORT_DATE_FORMAT": ISO_DAY}
    thousands, point, day = (getattr(formats, name, usual) for name, usual in names.items())
    return thousands, point, day
