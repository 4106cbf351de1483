"""Each page of the merchant site is in German, for a browser that asks for it."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from merchants.docs import docs_pages
from merchants.models import Role
from tests.merchants.pages.test_accessibility import PAGES
from tests.merchants.pages.test_identity_matrix import ROWS, make_world
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db

GERMAN = {"Accept-Language": "de"}
# Common English words that no German text has.
ENGLISH = re.compile(
    r"(?<!/)\b(the|this|your|you|and|with|not|are|is|of|from|will|yes|never|by|to|for|has|have|can|its?|on|"
    r"name of|choose|send|save|cancel|order|orders|wallet entries|state|change|time|all|no)\b",
    re.IGNORECASE,
)
# What people do not read as text: names of the API, scripts, and the zones to choose from.
UNREAD = re.compile(
    r"<(script|style|code|pre|option)\b.*?</\1>|It was used before\."  # as a member wrote
    r"|Voucher and Player-ID Top-up Purchasing API",  # its name
    re.DOTALL,
)


# Amounts and days as English writes them: 1,234.50, 0.07 and 2026-11-28.
ENGLISH_FIGURES = re.compile(
    r"(?<![\w./:-])(?:[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+-]?\d+\.(?:\d\d?|\d{4})|"
    r"\d{4}-\d\d-\d\d)(?![\w./-]|,\d)"
)


def english_words(page: str) -> list[str]:
    """The English words of a page, each with its surroundings."""
    body = page[page.index("<body") :].replace("<wbr>", "")
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", UNREAD.sub(" ", body)))
    return [text[max(found.start() - 30, 0) : found.end() + 30] for found in ENGLISH.finditer(text)]


def english_figures(page: str) -> list[str]:
    """The amounts and days of a page that its text has in English."""
    body = page[page.index("<body") :]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", UNREAD.sub(" ", body)))
    return [
        text[max(found.start() - 30, 0) : found.end() + 30]
        for found in ENGLISH_FIGURES.finditer(text)
    ]


def test_no_page_of_a_member_has_english_words() -> None:
    world = make_world()
    browser = browser_of(make_member(world.account, role=Role.OWNER))
    found = {}
    for name in PAGES:
        page = browser.get(ROWS[name].path(name, world.ids), headers=GERMAN)
        if page.status_code == 302:  # a form for which there is no reason now
            continue
        assert page.status_code == 200, name
        if words := english_words(page.text) + english_figures(page.text):
            found[name] = words
    assert found == {}


def test_no_page_before_the_sign_in_has_english_words(client: Client) -> None:
    for path in ("sign-in/", "password/forgotten/", "join/", "password/new/", "nowhere/"):
        page = client.get(f"/merchant/{path}", headers=GERMAN)
        assert english_words(page.text) == [], path
    assert english_words(client.get("/", headers=GERMAN).text) == []


def test_no_page_of_the_documentation_has_english_words(client: Client) -> None:
    pages = [reverse(f"docs:{name}") for name in (*docs_pages.PAGES, "api", "search")]
    read = {path: client.get(path, headers=GERMAN).text for path in pages}
    assert {path: words for path, page in read.items() if (words := english_words(page))} == {}
    found = client.get(reverse("docs:search"), {"q": "Idempotenzschlüssel"}, headers=GERMAN).text
    assert "Sicher wiederholen" in found
    assert "Kein Abschnitt" not in found


def test_english_words_are_found(client: Client) -> None:
    assert english_words(client.get("/merchant/sign-in/").text)
