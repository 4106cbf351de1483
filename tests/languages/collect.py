"""Collects the texts of the service into the catalogue of each language, and compiles it.

    make texts

It keeps translations, adds new texts without one, and drops those that are gone.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from gettext import GNUTranslations
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import django
import unfold
from babel import Locale
from babel.messages import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.utils.translation.template import templatize

from core.api.errors import ErrorCode, RefusalReason
from core.files.table_files import HEADINGS
from core.names import owners_of_names
from core.texts import english
from embedded.environment import PROJECT

APPS = (
    *("core", "config", "audit", "accounts", "catalogue", "wallets", "idempotency", "topups"),
    *("orders", "cases", "figures", "merchants", "operators"),
)
KEYWORDS = DEFAULT_KEYWORDS | {
    "lazy": None,
    "gettext_noop": None,
    "gettext_lazy": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
COUNTRIES = PROJECT / "accounts" / "countries.json"
# Codes of the CLDR for parts of countries, unions, tests and what is unknown.
NO_COUNTRIES = {
    *("AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "ZZ"),
}
# The theme has no German. Of its parts in `contrib`, the back office uses the filters.
THEME = Path(unfold.__file__).parent
PARTS_OF_THEME = ("*.py", "mixins/*.py", "templates/**/*.html", "contrib/filters/**/*.*")
Message = tuple[str | tuple[str, ...], str | None]


def catalogue_files() -> list[Path]:
    """The file of each language."""
    return sorted((PROJECT / "translations").glob("*/LC_MESSAGES/django.po"))


def texts() -> Iterator[tuple[str, Message]]:
    """Every text of the code, the templates, the models and the theme that can be translated, with
    its file."""
    for app in APPS:
        for path in sorted((PROJECT / app).rglob("*.py")):
            for message in _texts_of(path.read_bytes()):
                yield str(path.relative_to(PROJECT)), message
    for path in sorted((PROJECT / "templates").rglob("*.*")):
        for message in texts_of_template(path.read_text()):
            yield str(path.relative_to(PROJECT)), message
    for module, name in names():
        yield f"{module.replace('.', '/')}.py", (name, None)
    for message in texts_of_theme():
        yield "unfold", message
    for text in HEADINGS:
        yield "core/files/table_files.py", (text, None)
    for text in messages_of_fields():
        yield "rest_framework", (text, None)
    for reason in RefusalReason:  # its module does without Django
        yield "core/api/errors.py", (reason.message, None)
    for code in ErrorCode:
        yield "core/api/errors.py", (code.default_message, None)
    for text in texts_of_reference(import_module("core.api.openapi").openapi_document()):
        yield "merchants/docs/api_reference.py", (text, None)


def names() -> Iterator[tuple[str, str]]:
    """The names of the models that staff see, of their fields, and of all permissions, each with
    its module."""
    import_module("operators.admin.site")  # registers the pages
    pages = admin.site._registry
    models = {*pages, *(inline.model for page in pages.values() for inline in page.inlines)}
    for model in sorted(models, key=lambda model: model._meta.label):
        if model.__module__.partition(".")[0] in APPS:
            for owner, attribute in owners_of_names(model):
                yield model.__module__, english(getattr(owner, attribute))
    for model in apps.get_models():
        if model.__module__.partition(".")[0] in APPS:
            for _codename, name in model._meta.permissions:
                yield model.__module__, str(name)


def texts_of_theme() -> Iterator[Message]:
    """The texts of the theme that Django does not translate."""
    known = _texts_of_django()
    for part in PARTS_OF_THEME:
        for path in sorted(THEME.glob(part)):
            if path.suffix == ".py":
                found = _texts_of(path.read_bytes())
            elif path.suffix == ".html":
                found = texts_of_template(path.read_text())
            else:
                continue
            yield from (message for message in found if message[0] not in known)


def messages_of_fields() -> Iterator[str]:
    """Texts that Django REST framework translates with "du", and those of Django that have mistakes
    in German. Forms use the third from the end, too: without our text, the framework's German would
    replace Django's."""
    yield from import_module("operators.imports.catalogue_file").MESSAGES_OF_FIELDS
    yield "Enter a valid email address."
    yield "Enter the same password as before, for verification."
    yield "Your password can\N{RIGHT SINGLE QUOTATION MARK}t be a commonly used password."


def texts_of_reference(part: Any) -> Iterator[str]:
    """What the page of the reference shows of the OpenAPI document, or of a part of it: the
    descriptions, the names of examples and the headings of the groups."""
    if isinstance(part, list):
        for one in part:
            yield from texts_of_reference(one)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "tags" and "paths" in part:
                yield from map(import_module("merchants.docs.api_reference").title_of, value)
            if key == "examples":
                names = (one.get("summary", name) for name, one in value.items())
                yield from (name for name in names if not name.islower())  # not an error code
            elif key == "description" and isinstance(value, str):
                if re.search("[A-Za-z]", re.sub(r"`[^`]*`", "", value)):
                    yield value
            elif key != "example":
                yield from texts_of_reference(value)


def _texts_of_django() -> set[Any]:
    folder, found = Path(django.__file__).parent, set[Any]()
    for part in ("conf", "contrib/admin", "contrib/auth"):
        with (folder / part / "locale/de/LC_MESSAGES/django.mo").open("rb") as file:
            found |= set(GNUTranslations(file)._catalog)  # type: ignore[attr-defined]
    return found


def texts_of_template(text: str) -> Iterator[Message]:
    """The texts of a template. Django turns it into calls, with fillers between them."""
    lines = (line.lstrip() for line in templatize(text).splitlines())
    yield from _texts_of("\n".join(lines).encode())


def _texts_of(source: bytes) -> Iterator[Message]:
    if not any(word in source for word in (b"gettext", b"lazy(", b"_(")):
        return
    for _line, message, _comments, context in extract("python", BytesIO(source), KEYWORDS):
        yield message, context


def collect(path: Path) -> bytes:
    """The catalogue with all texts and the translations that it has."""
    with path.open("rb") as file:
        before = read_po(file, locale=path.parts[-3])
    after = Catalog(
        locale=before.locale,
        header_comment="# The texts of the service. `make texts` writes this file.",
        creation_date=before.creation_date,
        revision_date=before.creation_date,
        charset="utf-8",
        fuzzy=False,
    )
    for source, (message, context) in texts():
        known = before.get(message[0] if isinstance(message, tuple) else message, context)
        after.add(
            message,
            known.string if known else None,
            locations=[(source, 0)],
            context=context,
        )
    return _written(after)


def _written(catalogue: Catalog) -> bytes:
    file = BytesIO()
    write_po(file, catalogue, omit_header=False, sort_output=True, width=0, include_lineno=False)
    return file.getvalue()


def compiled(po: bytes, language: str) -> bytes:
    """The catalogue as the service reads it."""
    file = BytesIO()
    write_mo(file, read_po(BytesIO(po), locale=language))
    return file.getvalue()


def countries() -> str:
    """The content of accounts/countries.json: the names of the countries in each language."""
    languages = sorted({settings.LANGUAGE_CODE, *(path.parts[-3] for path in catalogue_files())})
    names = {
        language: {
            code: name
            for code, name in sorted(Locale(language).territories.items())
            if code.isalpha() and len(code) == 2 and code not in NO_COUNTRIES
        }
        for language in languages
    }
    return json.dumps(names, ensure_ascii=False, indent=0) + "\n"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for path in catalogue_files():
        po = collect(path)
        path.write_bytes(po)
        path.with_suffix(".mo").write_bytes(compiled(po, path.parts[-3]))
    COUNTRIES.write_text(countries())
    return 0


if __name__ == "__main__":
    sys.exit(main())
