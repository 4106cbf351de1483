"""Texts that are translated when they are shown (docs/develop.md, "Translate a text")."""

import re
from contextlib import AbstractContextManager
from functools import cache
from typing import cast

from django.conf import settings
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

# A placeholder: `%(name)s` of Python, or `{name}` of Django REST framework.
VALUE = re.compile(r"%\((\w+)\)s|\{(\w+)(?::\w)?\}")
LONGEST = 1000
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
    return VALUE.sub(lambda found: values[found[1] or found[2]], gettext(template))


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
