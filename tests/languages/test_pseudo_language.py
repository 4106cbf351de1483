"""A language made by machine finds texts that no language can translate.

A language is a folder with a catalogue, and each text of this one has accents. So a text without
accents on a page in this language comes from no catalogue.
"""

import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import django
import pytest
from babel.messages import Catalog
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po
from django.conf import settings
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from operators.telegram.models import PlatformSettings
from tests.factories import make_merchant
from tests.languages.collect import catalogue_files
from tests.languages.test_german_staff_pages import (
    LETTERS,
    SAME,
    TITLE,
    Reader,
    addresses,
    data,
)
from tests.merchants.pages.test_accessibility import PAGES
from tests.merchants.pages.test_identity_matrix import ROWS, make_world
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import (
    World,
    make_proof,
    rows_for_a_module,
    signed_in,
    without_frame,
)
from tests.operators.pages.test_role_matrix import LINKS

LANGUAGE, FOLDER = "en-xa", "en_XA"
MADE = re.compile("[~áéíóúÁÉÍÓÚ]")
TAG = re.compile(r"<[^>]*>")
VALUE = re.compile(r"%\(\w+\)[sd]|%[sd]")
NAMES = re.compile(r"\b(Telegram|API)\b")
BESIDE_ANOTHER = "Specific permissions for this user. "  # Django joins two texts
WORD = 7  # characters, as many as a word has
ACCENTS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
# What a translation keeps: placeholders, tags and entities.
KEPT = re.compile(r"(%\(\w+\)[sd]|%[sd%]|\{\w*(?::\w)?\}|<[^>]*>|&\w+;|https?://\S+)")


def pseudo(text: str) -> str:
    """The text with accents, and 1.4 times as long."""
    parts = KEPT.split(text)
    parts[::2] = [part.translate(ACCENTS) for part in parts[::2]]
    more = max(len(text) * 2 // 5, 1)
    return "".join(parts) + " ".join("~" * min(WORD, more - at) for at in range(0, more, WORD + 1))


@pytest.fixture(scope="module")
def pages(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """Each page of both sites in this language, by its address."""
    folder = tmp_path_factory.mktemp("translations")
    write_catalogue(folder / FOLDER / "LC_MESSAGES" / "django.mo")
    with (
        override_settings(
            LANGUAGES=[*settings.LANGUAGES, (LANGUAGE, "Pseudo")],
            LOCALE_PATHS=[*settings.LOCALE_PATHS, folder],
        ),
        rows_for_a_module(django_db_blocker),
    ):
        make_proof(make_merchant())
        World().grow(1)
        PlatformSettings.objects.get_or_create()
        yield dict([*staff_pages(), *merchant_pages()])


def write_catalogue(path: Path) -> None:
    (source,) = catalogue_files()
    with source.open("rb") as file:
        messages = read_po(file, locale="de")
    catalogue = Catalog(locale="en")
    for message in messages:
        if not message.id:
            continue
        one = message.id if isinstance(message.id, str) else message.id[0]
        string: Any = pseudo(one) if one == message.id else tuple(map(pseudo, message.id))
        catalogue.add(message.id, string, context=message.context)
    path.parent.mkdir(parents=True)
    with path.open("wb") as compiled:
        write_mo(compiled, catalogue)


def staff_pages() -> Iterator[tuple[str, str]]:
    browser = signed_in()
    for address in addresses():
        with without_frame(TITLE + LINKS):
            page: Any = browser.get(address, headers={"Accept-Language": LANGUAGE})
        assert page.status_code != HTTPStatus.INTERNAL_SERVER_ERROR, address
        if page.status_code == HTTPStatus.OK and "html" in page["Content-Type"]:
            yield address, page.text


def merchant_pages() -> Iterator[tuple[str, str]]:
    world = make_world()
    browser = browser_of(make_member(world.account))
    for name in PAGES:
        address = ROWS[name].path(name, world.ids)
        page = browser.get(address, headers={"Accept-Language": LANGUAGE})
        if page.status_code == HTTPStatus.OK:
            yield address, page.text.replace("<wbr>", "")


@cache
def djangos() -> re.Pattern[str]:
    """Texts that Django translates into each language that it knows. Tags divide them."""
    texts: set[str] = set()
    for part in ("conf", "contrib/admin", "contrib/auth"):
        path = Path(django.__file__).parent / part / "locale/de/LC_MESSAGES/django.mo"
        with path.open("rb") as file:
            for message in read_mo(file):
                for text in [message.id] if isinstance(message.id, str) else message.id:
                    texts |= {" ".join(one.split()) for one in TAG.split(text)}
    patterns = (
        ".+".join(map(re.escape, VALUE.split(text)))
        for text in texts
        if LETTERS.search(VALUE.sub(" ", text))
    )
    return re.compile("|".join(patterns), re.IGNORECASE)


def is_untranslated(text: str, written: re.Pattern[str]) -> bool:
    text = text.removeprefix(BESIDE_ANOTHER)
    if MADE.search(text) or djangos().fullmatch(text.partition(" · ")[0]):
        return False
    rest = SAME.sub(" ", written.sub(" ", text))
    named = rest.strip(" 0123456789")  # the year of a month's name, which Django translates
    return bool(LETTERS.search(NAMES.sub(" ", rest))) and not djangos().fullmatch(named)


def test_each_text_of_both_sites_can_be_translated(pages: dict[str, str], db: None) -> None:
    written, found = data(), dict[str, list[str]]()
    for address, page in pages.items():
        for text in Reader(page).texts:
            if is_untranslated(text, written):
                found.setdefault(text, []).append(address)
    assert len(pages) > 180
    assert found == {}, "\n".join(map(str, found.items()))


def test_a_text_without_a_translation_is_found(db: None) -> None:
    nothing = re.compile("(?!)")
    assert is_untranslated("Purchases of today", nothing)
    assert not is_untranslated(pseudo("Purchases of today"), nothing)
    made = pseudo('Save %(name)s <a href="x">now</a>')
    assert made.startswith('Sávé %(name)s <a href="x">nów</a>~')
    assert len(made) > 1.35 * len('Save %(name)s <a href="x">now</a>')
