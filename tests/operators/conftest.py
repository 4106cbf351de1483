from collections.abc import Iterator

import pytest
from django.test import Client

from tests.operators.back_office import signed_in, with_menu, without_menu


@pytest.fixture
def browser(db: None) -> Client:
    """A browser in which a superuser has signed in."""
    return signed_in()


@pytest.fixture(autouse=True)
def _pages_without_menu(request: pytest.FixtureRequest) -> Iterator[None]:
    """The menu names every page, and takes up to a fifth of the time of each page. Only tests with
    the mark `menu` render it."""
    with with_menu() if request.node.get_closest_marker("menu") else without_menu():
        yield
