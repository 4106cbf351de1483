"""Shared by every test. Real servers come from `python -m embedded exec` (`make test`)."""

import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
import pytest_django
from django.conf import settings
from django.core.cache import cache, caches

from core.database.key_ring import key_ring
from embedded.environment import SERVICE
from tests.answers import CheckedClient
from tests.database import create_test_database, remove_test_database
from tests.factories import Merchant, make_merchant
from tests.flushing import empty_tables, quick_flush
from tests.live import LiveServer, live_server
from tests.neighbour import settle_neighbour
from tests.shortcuts import shortcuts

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest_plugins = ["tests.processor_time", "tests.programs"]

LONGEST_FILES = Path(__file__).with_name("tests") / "longest_files.txt"

# Loading all tests makes a million objects that stay until the end: there is nothing to collect.
gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` begins with the tests that share rows, servers or a browser with their file or
    folder. A process takes tests from the end of the list of another. So the tests at its beginning
    stay in one process, and what they share is set up once.

    `make system-test` hands out whole files in this order, and begins with those that take longest.
    """
    if config.getoption("loadscopereorder", default=True):
        items.sort(key=lambda item: not _shares(item))
    else:
        place = {file: number for number, file in enumerate(longest_files())}
        items.sort(key=lambda item: place.get(item.location[0], len(place)))


def longest_files() -> list[str]:
    """The files of `make system-test` that took longest when that was measured last."""
    return [line.split()[1] for line in LONGEST_FILES.read_text().splitlines()]


def _shares(item: pytest.Item) -> bool:
    fixtures = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(fixture.scope in ("module", "package") for (*_, fixture) in fixtures.values())


def pytest_collection_finish() -> None:
    """Has the garbage collector skip what is loaded by now."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for servers and timers."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope="session")
def _quick() -> Iterator[None]:
    with quick_flush(), shortcuts():
        yield


@pytest.fixture(autouse=True, scope="session")
def _service_role() -> None:
    """The tests themselves are the owner: they create databases, and damage data on purpose. The
    processes that they start have the service's role (`database_url` in tests/live.py)."""
    settings.SERVICE_ROLE = SERVICE


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: pytest_django.DjangoDbBlocker,
) -> Iterator[None]:
    """The test database (tests/database.py), with the encryption keys that the first process of a
    service registers, and with a second merchant (tests/neighbour.py)."""
    creator = os.getpid()
    with django_db_blocker.unblock():
        create_test_database()
        key_ring()
        settle_neighbour()
    yield
    with django_db_blocker.unblock():
        remove_test_database(creator)


@pytest.fixture
def alone(db: None) -> None:
    """Removes the neighbour, for a test that looks at all merchants at once."""
    empty_tables()


@pytest.fixture(autouse=True, scope="session")
def _own_cache_keys(worker_id: str) -> None:
    """Test processes share one Valkey."""
    caches.settings["default"]["KEY_PREFIX"] = worker_id
    cache.key_prefix = worker_id


@pytest.fixture(autouse=True)
def _own_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test counts from 0: many use the same addresses, and processes number clients alike.
    No minute ends during a test, or it would count from 0 again. Servers keep their own clock."""
    monkeypatch.setattr(settings, "RATELIMIT_CACHE_PREFIX", f"{uuid4()}:", raising=False)
    now = time.time()
    monkeypatch.setattr("django_ratelimit.core.time", SimpleNamespace(time=lambda: now))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """No purchase runs beside the jobs that a test calls. Processes of their own do rest."""
    monkeypatch.setattr("core.database.pauses.LONGEST", 0)


@pytest.fixture
def client() -> CheckedClient:
    """A client without a key. Its API answers are checked like all others."""
    return CheckedClient()


@pytest.fixture(scope="session")
def live(django_db_setup: None) -> Iterator[LiveServer]:
    """A running web server, for tests that commit (`transaction=True`) and do not stop it."""
    with live_server(workers=1) as server:
        yield server


@pytest.fixture(scope="module")
def _running_chromium(django_db_setup: None) -> Iterator["Browser"]:
    from tests.browsing import open_browser  # noqa: PLC0415  # loads Playwright

    with open_browser() as browser:
        yield browser


@pytest.fixture
def chromium(_running_chromium: "Browser") -> Iterator["Browser"]:
    """A browser, started once for each module. Its pages and cookies last for one test."""
    yield _running_chromium
    for context in _running_chromium.contexts:
        context.close()


@pytest.fixture
def merchant(db: None) -> Merchant:
    """A merchant with 100.00 USD."""
    return make_merchant()
