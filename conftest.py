"""Shared by every test. Real servers come from `python -m embedded exec` (`make test`)."""

import gc
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import hypothesis
import pytest
import pytest_django
from django.conf import settings
from django.core.cache import cache, caches
from playwright.sync_api import Browser

from core.database.key_ring import key_ring
from embedded.environment import SERVICE
from labs.bench.load import find_wrk
from labs.crashes.rabbitmq import find_rabbitmq
from labs.failover.cluster import find_patroni
from labs.scaling.pgbouncer import find_pgbouncer
from tests.answers import CheckedClient
from tests.browsing import find_browser, open_browser
from tests.database import create_test_database, remove_test_database
from tests.deploy.engine import find_containers
from tests.factories import Merchant, make_merchant
from tests.flushing import empty_tables, quick_flush
from tests.live import LiveServer, live_server
from tests.neighbour import settle_neighbour
from tests.old_version import has_history
from tests.proxies.running import find_proxies
from tests.shortcuts import shortcuts

hypothesis.settings.register_profile("shared machine", deadline=None, print_blob=True)
hypothesis.settings.load_profile("shared machine")

# What generated clients need in Go, PHP and Java.
LIBRARIES_OF_CLIENTS = [
    "/usr/share/gocode/src/gopkg.in/validator.v2",
    "/usr/share/php/GuzzleHttp/autoload.php",
    "/usr/share/java/jakarta-annotation-api.jar",
]
# What some tests need beside Python, by their marker, and where it was found on this machine.
PROGRAMS = {
    "browser": find_browser(),
    "compiler": shutil.which("cc"),
    "containers": find_containers(),
    "generators": (
        all(map(shutil.which, ("npm", "javac", "go", "php")))
        and all(map(os.path.exists, LIBRARIES_OF_CLIENTS))
    )
    or None,
    "go": shutil.which("go"),
    "history": has_history() or None,
    "java": shutil.which("javac"),
    "nginx": find_proxies(),
    "node": shutil.which("node"),
    "npm": (shutil.which("node") and shutil.which("npm")) or None,
    "patroni": find_patroni(),
    "pgbouncer": find_pgbouncer(),
    "php": shutil.which("php"),
    "prometheus": all(map(shutil.which, ("prometheus", "promtool", "amtool"))) or None,
    "rabbitmq": find_rabbitmq(),
    "systemd": shutil.which("systemd-analyze"),
    "wrk": find_wrk(),
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that need a program this machine lacks; CI always has them all."""
    for marker in (name for name, place in PROGRAMS.items() if place is None):
        without = [item for item in items if item.get_closest_marker(marker)]
        if without and os.environ.get("CI"):
            raise pytest.UsageError(f"CI lacks what tests marked `{marker}` need")
        items[:] = [item for item in items if item not in without]
        config.hook.pytest_deselected(items=without)
    places = {
        file: place
        for place, file in enumerate(_in_order(dict.fromkeys(item.path for item in items)))
    }
    items.sort(key=lambda item: places[item.path])


# Folders whose files take longest. They start first, or one process would end with a long file
# while the others have nothing left to do. Files that wait for servers and timers alternate with
# files that compute, so that the cores are busy all the time.
WAITING = ("failover", "crashes", "tasks", "stress", "e2e", "telegram", "scaling")
COMPUTING = ("performance", "proof", "operators", "merchants")


def _in_order(files: Iterable[Path]) -> Iterator[Path]:
    folders: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        folders[file.parent.name].append(file)
    waiting, computing = (
        [file for name in names for file in folders.pop(name, ())] for names in (WAITING, COMPUTING)
    )
    for pair in zip_longest(waiting, computing):
        yield from filter(None, pair)
    for others in folders.values():
        yield from others


def pytest_collection_finish() -> None:
    """Has the garbage collector skip what is loaded by now, which stays until the end."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: many tests wait for servers and timers."""
    return (os.cpu_count() or 1) + 1


def pytest_report_header() -> list[str]:
    return [
        f"{name}: {place or f'none, so the tests marked `{name}` are left out'}"
        for name, place in PROGRAMS.items()
    ]


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
def _running_chromium(django_db_setup: None) -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def chromium(_running_chromium: Browser) -> Iterator[Browser]:
    """A browser, started once for each module. Its pages and cookies last for one test."""
    yield _running_chromium
    for context in _running_chromium.contexts:
        context.close()


@pytest.fixture
def merchant(db: None) -> Merchant:
    """A merchant with 100.00 USD."""
    return make_merchant()
