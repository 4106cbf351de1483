"""Texts that are translated when they are shown (docs/develop.md, "Translate a text")."""

import re
from contextlib import AbstractContextManager
from datetime import date
from functools import cache
from typing import cast

from django.conf import settings
from django.utils import translation
from django.utils.formats import date_format, get_format
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

# A placeholder: `%(name)s` of Python, or `{name}` of Django REST framework.
VALUE = re.compile(r"%\((\w+)\)s|\{(\w+)(?::\w)?\}")
# An amount or a day in what is stored in English: `1,234.50 USD`, `2026-11-28`.
FIGURE = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?P<time> \d\d:\d\d(:\d\d)?)?"
    r"|(?P<number>-?[\d,]+\.\d{2,}|\d{1,3}(,\d{3})+)(?P<rest> [A-Z]{3})?"
)
LONGEST = 1000
# The names of the values that are amounts, numbers or days.
FIGURE_NAMES = (
    *("after", "all", "amount", "before", "codes", "cost", "count", "day"),
    *("left", "level", "limit", "most", "number", "price", "stock"),
)
SENTENCES = ("place", "problem")  # the values that are translated, too


def lazy(text: str) -> str:
    """A text outside a function: each reader gets it in their own language.

    It is Django's lazy text under the type that dataclasses, choices and forms declare.
    """
    return cast("str", gettext_lazy(text))


def gettext_noop(text: str) -> str:
    """Marks a text for translation, in modules that the settings import, such as `core.backoffice`.
    Django's function of this name reads the settings."""
    return text


def inside_sentence(text: str) -> str:
    """A lazy text as it stands inside a sentence: in small letters, except in German."""
    return str(text) if translation.get_language() == "de" else text.lower()


def translate_stored(text: str, *templates: str) -> str:
    """A sentence that was stored in English, in the reader's language.

    `templates` are the messages (`gettext_noop`) that it may have been made of. The first that fits
    counts. The value `line` of a message is a number, and `place` and `problem` are such sentences
    themselves. A sentence that fits none of them is returned as it is, and so is one with more than
    LONGEST characters: to find the values in it may take minutes.
    """
    if translation.get_language() == settings.LANGUAGE_CODE or len(text) > LONGEST:
        return text
    template = message_of(text, *templates)
    values = values_in(text, template)
    if not template or values is None:
        return text
    for name in SENTENCES:
        if name in values:
            values[name] = translate_stored(values[name], *templates)
    values |= {name: local_figure(text) for name, text in values.items() if name in FIGURE_NAMES}
    return VALUE.sub(lambda found: values[found[1] or found[2]], gettext(template))


def local_figure(value: str) -> str:
    """A stored value in the formats of the language, if it is an amount or a day; else as it is."""
    found = FIGURE.fullmatch(value)
    if found is None:
        return value
    if text := found["day"]:
        try:
            day = date.fromisoformat(text)
        except ValueError:  # a name that somebody chose
            return value
        return date_format(day, "SHORT_DATE_FORMAT") + (found["time"] or "")
    return with_separators(found["number"]) + (found["rest"] or "")


def with_separators(number: str) -> str:
    """A number with commas and a point as a text with the separators of the language."""
    whole, point, decimals = number.partition(".")
    thousands, decimal = get_format("THOUSAND_SEPARATOR"), get_format("DECIMAL_SEPARATOR")
    return whole.replace(",", thousands) + (decimal if point else "") + decimals


def message_of(text: str, *templates: str) -> str:
    """The first of these messages that fits the English sentence; empty if none does."""
    return next((one for one in templates if _pattern(one).fullmatch(text)), "")


def values_in(text: str, template: str) -> dict[str, str] | None:
    """The values that an English sentence has in the places of its template; None if it does not
    fit."""
    match = _pattern(template).fullmatch(text)
    return match and match.groupdict()


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """A pattern that finds the values of a message in a sentence."""
    pattern, end = "", 0
    for value in VALUE.finditer(template):
        name = value[1] or value[2]
        pattern += re.escape(template[end : value.start()])
        pattern += f"(?P<{name}>{'[0-9?]+' if name == 'line' else '.+?'})"
        end = value.end()
    return re.compile(pattern + re.escape(template[end:]))


def english(text: str | Promise) -> str:
    """A lazy text as it is stored for all readers: in the audit trail, as a fact of an email."""
    with in_english():
        return str(text)


def in_english() -> AbstractContextManager[None]:
    """Texts in this block are for all readers: CSV files, values of workbooks, the audit trail."""
    return translation.override(settings.LANGUAGE_CODE)
