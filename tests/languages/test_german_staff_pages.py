"""Each page of staff is in German, for a browser that asks for it."""

import html
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any
from uuid import UUID

import pytest
from babel.messages.pofile import read_po
from django.apps import apps
from django.db.models import CharField, JSONField, TextField, UUIDField
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django import DjangoDbBlocker

from operators.telegram.models import PlatformSettings
from tests.factories import make_merchant
from tests.languages.collect import catalogue_files
from tests.languages.test_german_pages import ENGLISH, ENGLISH_FIGURES, GERMAN
from tests.operators.back_office import (
    World,
    make_proof,
    rows_for_a_module,
    shown_models,
    signed_in,
    without_frame,
)
from tests.operators.pages.test_role_matrix import LINKS, OF_MODELS, OWN, PAGES, address_of

ATTRIBUTES = ("aria-label", "title", "placeholder", "alt", "data-label")
EMPTY_TAGS = {"br", "hr", "img", "input", "link", "meta", "path", "progress", "rect"}
UNREAD = {"script", "style", "code", "option", "textarea"}  # zones are options
# Names and formats, which are the same in both languages.
SAME = re.compile(
    r"\b(Voucher & top-up( service)?|Prometheus|UTC|USD|EUR|CSV|XLSX|JSON|PDF|esc|[0-9a-f]{16}|"
    r"\d+ (h|min)|inf|shell:root)\b"
)
LETTERS = re.compile("[A-Za-z]{2}")
DJANGOS = re.compile(r"^(Select|Change|View|Add) ")  # titles that name no page
TITLE = "<title>{% block title %}{% endblock %}</title>"
# What pages show as a name, a link, or folded under "Details".
RAW = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-|\b[0-9a-f]{16,}\b|\b(product|shelf|account|client|order|code)_id\b"
    r"|\b(shell|sql|client|form|opening|reversal-of-entry|\w+-of-case):\w|\bAPI client \d"
    r"|(?<![\d.])\d[\d,]*\.\d{2,}0\b(?!\.)|(^|\s)- → |^(None|True|False)$"
)


class Reader(HTMLParser):
    """The texts of a page, as people read or hear them, without what is marked as English."""

    unread = UNREAD

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: set[str] = set()
        self.inside: list[tuple[str, bool]] = []  # the open tags, and whether they are unread
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.texts |= {" ".join((given.get(name) or "").split()) for name in ATTRIBUTES}
        if tag not in EMPTY_TAGS:
            is_icon = "material-symbols-outlined" in (given.get("class") or "")
            is_english = tag != "html" and given.get("lang") == "en"
            self.inside.append((tag, tag in self.unread or is_icon or is_english))

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, text: str) -> None:
        if not any(unread for _tag, unread in self.inside):
            text = text.partition(" | ")[0] if self.inside[-1:] == [("title", False)] else text
            self.texts.add(" ".join(text.split()))


class Words(Reader):
    """The same without what is folded, or written as code."""

    unread = UNREAD | {"details"}


Suspects = dict[str, bool]


def suspects(german: str, english: str) -> Suspects:
    """The texts with English words, and those that are the same on both pages, which is True."""
    here, there = Reader(german).texts, Reader(english).texts
    return {text: text in there for text in here if text in there or ENGLISH.search(text)}


def is_english(text: str, *, same: bool, written: re.Pattern[str]) -> bool:
    """Whether a suspect is more than names, data, and words that German has, too."""
    rest = SAME.sub(" ", written.sub(" ", text)).strip(" :,.0123456789")
    if not same:
        return bool(ENGLISH.search(rest))
    return bool(LETTERS.search(rest)) and rest.lower() not in same_words()


@cache
def same_words() -> set[str]:
    """The texts whose translation is the same, but for capital letters."""
    (path,) = catalogue_files()
    with path.open("rb") as file:
        messages = read_po(file, locale="de")
    both = {(str(each.id).lower(), str(each.string).lower()) for each in messages}
    return {english for english, german in both if english == german}


def data() -> re.Pattern[str]:
    """What people and programs wrote into the database."""
    found: set[str] = set()
    for model in apps.get_models():
        names = [
            field.name
            for field in model._meta.concrete_fields
            if isinstance(field, CharField | TextField | JSONField | UUIDField)
        ]
        for row in model._default_manager.values_list(*names) if names else ():
            found |= set(texts_in(row))
    return re.compile("|".join(re.escape(text) for text in sorted(found, key=len, reverse=True)))


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)
    elif isinstance(value, str | UUID) and LETTERS.search(str(value)):
        yield str(value)


@pytest.fixture(scope="module")
def world(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[dict[str, tuple[str, str]]]:
    """Each page in German and in English, by its address. They are rendered once."""
    with rows_for_a_module(django_db_blocker):
        make_proof(make_merchant())
        World().grow(1)
        PlatformSettings.objects.get_or_create()
        yield dict(_rendered(signed_in()))


def _rendered(browser: Client) -> Iterator[tuple[str, tuple[str, str]]]:
    for address in addresses():
        with without_frame(TITLE + LINKS):
            german: Any = browser.get(address, headers=GERMAN)
            assert german.status_code != HTTPStatus.INTERNAL_SERVER_ERROR, address
            if german.status_code == HTTPStatus.OK and "html" in german["Content-Type"]:
                yield address, (german.text, browser.get(address).text)


def addresses() -> Iterator[str]:
    for model in shown_models():
        for page in OF_MODELS:
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"
            if page != "list_file":
                yield address_of(name)
    for name in [*PAGES, *OWN]:
        try:
            yield address_of(name)
        except NoReverseMatch:
            continue  # of a row of the reader


def test_no_page_of_staff_has_english_texts(world: dict[str, tuple[str, str]], db: None) -> None:
    found = {address: suspects(*pages) for address, pages in world.items()}
    assert len(found) > 150
    assert english_of(found) == {}


def test_each_page_has_a_title_of_its_own_and_no_raw_values(
    world: dict[str, tuple[str, str]], db: None
) -> None:
    found, lists = {}, []
    for address, (_german, english) in world.items():
        if not english.startswith("<title>"):
            continue  # a part of a page
        title = title_of(english)
        raw = sorted(text for text in {*Words(english).texts, title} if RAW.search(text))
        is_list = address.count("/") == 4  # such as /admin/catalogue/shelf/
        if is_list:
            lists.append(title)
        if DJANGOS.search(title) and (is_list or address.endswith(("/change/", "/add/"))):
            raw.append(title)
        if raw:
            found[address] = raw
    assert found == {}
    assert len(lists) == len(set(lists)) > 30


def test_no_page_of_staff_has_english_figures(world: dict[str, tuple[str, str]], db: None) -> None:
    written = data()
    found = {
        address: sorted(
            text for text in Reader(german).texts if ENGLISH_FIGURES.search(written.sub(" ", text))
        )
        for address, (german, _english) in world.items()
    }
    assert {address: texts for address, texts in found.items() if texts} == {}


def title_of(page: str) -> str:
    title, _, rest = page.removeprefix("<title>").partition("|")
    assert rest, "the title ends with the name of the service"
    return html.unescape(" ".join(title.split()))


def english_of(found: dict[str, Suspects]) -> dict[str, list[str]]:
    """The English texts of each page."""
    written = data()
    left = {
        address: sorted(
            text for text, same in texts.items() if is_english(text, same=same, written=written)
        )
        for address, texts in found.items()
    }
    return {address: texts for address, texts in left.items() if texts}


def test_the_frame_and_pages_before_the_sign_in_have_no_english_texts(
    world: None, db: None
) -> None:
    own, nobody = signed_in(), Client()
    pages = {(own, reverse("time_zone")), (own, "/admin/nowhere/")}
    pages |= {(nobody, f"/admin/{path}") for path in ("login/", "forgotten/", "new-password/")}
    found = {
        address: suspects(browser.get(address, headers=GERMAN).text, browser.get(address).text)
        for browser, address in pages
    }
    assert english_of(found) == {}


def test_english_texts_are_found(db: None) -> None:
    browser, address = signed_in(), reverse("time_zone")
    page = browser.get(address).text
    found = english_of({address: suspects(page, page)})[address]
    assert "Language and time zone" in found
    assert "Overview" in found
