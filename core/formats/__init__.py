"""Amounts and days as people write them in the language of the reader: `1,234.50`, `1.234,50`.

Pages, emails and the PDF use these functions, and Django's filters of dates and numbers, which read
the same formats. What programs read is written without them.
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext

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


def amount_fact(amount: Decimal, currency: str) -> dict[str, str]:
    """An amount as a fact of an email, which is stored before its reader's language is known."""
    return {"amount": money_text(amount), "currency": currency}


def day_fact(day: date) -> dict[str, str]:
    """A day as a fact of an email."""
    return {"day": day.isoformat()}


def text_fact(text: str, **values: Any) -> dict[str, Any]:
    """A message (`gettext_noop`) as a fact of an email, with facts in the places of its values."""
    return {"text": text, "values": values}


def local_fact(fact: Any) -> Any:
    """A fact of an email in the reader's language. A text is not touched: it may be a name."""
    match fact:
        case {"amount": str(amount), "currency": str(currency)}:
            return local_amount(Decimal(amount), currency)
        case {"day": str(day)}:
            return local_day(date.fromisoformat(day))
        case {"text": str(text), "values": dict(values)}:
            return gettext(text) % local_facts(values)
        case dict():
            return local_facts(fact)
        case list():
            return [local_fact(one) for one in fact]
        case _:
            return fact


def local_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an email in the reader's language."""
    return {name: local_fact(fact) for name, fact in facts.items()}
