"""Texts that are translated when they are shown (docs/develop.md, "Translate a text")."""

from contextlib import AbstractContextManager
from typing import cast

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext_lazy


def lazy(text: str) -> str:
    """A text outside a function: each reader gets it in their own language.

    It is Django's lazy text under the type that dataclasses, choices and forms declare.
    """
    return cast("str", gettext_lazy(text))


def inside_sentence(text: str) -> str:
    """A lazy text as it stands inside a sentence: in small letters, except in German."""
    return str(text) if translation.get_language() == "de" else text.lower()


def english(text: str) -> str:
    """A lazy text as it is stored for all readers: in the audit trail, as a fact of an email."""
    with in_english():
        return str(text)


def in_english() -> AbstractContextManager[None]:
    """Texts in this block are for all readers: headings of files, the audit trail."""
    return translation.override(settings.LANGUAGE_CODE)
