"""Every list of the back office answers every query: a search, a filter, a page, an unknown row."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from tests.operators.back_office import World, list_url, rows_for_a_module, signed_in, without_frame
from tests.operators.pages.test_admin_pages import CONTENT, LISTED, ODD_TERMS, pages_of

ODD_IDS = ["0", "-1", "x", "9" * 30, "%00"]
BAD_QUERIES: list[dict[str, str]] = [{"p": "999999"}, {"p": "x"}, {"o": "99.x"}, {"nonsense": "1"}]
VALUES = ("1", "none", "2026-11-21", "9" * 30)


@pytest.fixture(scope="module")
def rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Rows of every model, more than a page holds."""
    with rows_for_a_module(django_db_blocker):
        World().grow(3)
        yield


@pytest.fixture
def browser(rows: None, db: None) -> Iterator[Client]:
    """A browser that opens lists of two rows without the frame around them: rows and the frame take
    most of the time. The frame is the same for every query of a list."""
    with pages_of(2), without_frame(CONTENT):
        yield signed_in()


class List:
    """A model's list, asked with many queries."""

    def __init__(self, model: Any, browser: Client) -> None:
        self._model, self._browser = model, browser
        self._redirects: dict[str, int] = {}

    def status(self, **query: Any) -> int:
        """The status of the page, or of the page to which it redirects: many queries lead to the
        same page, which is opened once."""
        with transaction.atomic():
            answer = self._browser.get(list_url(self._model, **query))
        if answer.status_code != 302:
            return int(answer.status_code)
        target = answer["Location"]
        if target not in self._redirects:
            with transaction.atomic():
                there = self._browser.get(urljoin(list_url(self._model), target), follow=True)
            self._redirects[target] = there.status_code
        return self._redirects[target]


def test_any_search_works(browser: Client, subtests: pytest.Subtests) -> None:
    for model in LISTED:
        for term in ODD_TERMS:
            with subtests.test(f"{model._meta.label_lower}: {term[:50]}"), transaction.atomic():
                assert browser.get(list_url(model, q=term)).status_code == 200


def test_an_unknown_object_redirects(browser: Client, subtests: pytest.Subtests) -> None:
    for model in LISTED:
        for odd in ODD_IDS:
            with subtests.test(f"{model._meta.label_lower}: {odd}"), transaction.atomic():
                assert browser.get(f"{list_url(model)}{odd}/change/").status_code == 302


def test_a_bad_query_of_a_list_shows_a_list(browser: Client, subtests: pytest.Subtests) -> None:
    for model in LISTED:
        rows = List(model, browser)
        for query in BAD_QUERIES:
            with subtests.test(f"{model._meta.label_lower}: {query}"):
                assert rows.status(**query) == 200


def test_each_filter_works(browser: Client, subtests: pytest.Subtests) -> None:
    for model in LISTED:
        rows = List(model, browser)
        filters = browser.get(list_url(model)).context["cl"].filter_specs
        for parameter in [name for spec in filters for name in spec.expected_parameters()]:
            for value in VALUES:
                with subtests.test(f"{model._meta.label_lower}: {parameter}={value}"):
                    assert rows.status(**{parameter: value}) == 200
