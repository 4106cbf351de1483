"""A failing cache is left alone for a while, and nothing from the cache is unpickled."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.redis import RedisCache
from django.utils.module_loading import import_string

from core import cache as core_cache
from core.cache import CacheLost, Outage
from tests.listeners import silent_server
from tests.live import HOST

COUNT = 20
FAILURES = [TimeoutError, ConnectionRefusedError]


@pytest.fixture(autouse=True)
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    """An outage of this test only; the process has others' caches as well."""
    outage = Outage()
    monkeypatch.setattr(core_cache, "outage", outage)
    return outage


def command_to(kind: str, url: str) -> Callable[[], object]:
    """A command to a cache of the settings, but on another server."""
    chosen: Any = settings.CACHES[kind]
    cache = import_string(chosen["BACKEND"])(url, {"OPTIONS": chosen["OPTIONS"]})
    return lambda: cache.add("key", 1, 60)


def test_each_method_of_djangos_cache_that_asks_the_server_is_guarded() -> None:
    methods = {name for name, one in vars(RedisCache).items() if callable(one)}
    public = {name for name in methods if not name.startswith("_")}
    assert public - {"get_backend_timeout"} == public & set(vars(core_cache.ImpatientRedisCache))


def tries(command: Callable[[], object]) -> None:
    for _ in range(COUNT):
        with pytest.raises(CacheLost):
            command()


@pytest.mark.parametrize("kind", ["default", "counters"])
def test_a_silent_cache_is_tried_once_per_pause(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with silent_server() as server:
        command = command_to(kind, f"redis://{HOST}:{server.port}/0")
        tries(command)
        assert server.connections == 1
    assert caplog.text.count("cache_lost") == 1


@pytest.mark.parametrize("kind", ["default", "counters"])
def test_control_without_the_pause_every_command_waits_for_the_cache(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_cache, "PAUSE_SECONDS", 0)
    with silent_server() as server:
        tries(command_to(kind, f"redis://{HOST}:{server.port}/0"))
        assert server.connections == COUNT


def failing(error: type[Exception]) -> Callable[[], int]:
    def command() -> int:
        raise error

    return command


@pytest.mark.parametrize("error", FAILURES)
def test_one_command_tries_the_cache_after_the_pause(
    error: type[Exception],
    outage: Outage,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 1000.0
    monkeypatch.setattr("core.cache.time.monotonic", lambda: now)
    with pytest.raises(CacheLost):
        outage.run(failing(error))

    def during_a_try() -> int:
        """While one thread waits for the cache, the others do not."""
        with pytest.raises(CacheLost):
            outage.run(lambda: pytest.fail("a second command tried the cache"))
        raise error

    for _ in range(3):
        with pytest.raises(CacheLost):
            outage.run(lambda: pytest.fail("the cache was tried during the pause"))
        now += core_cache.PAUSE_SECONDS
        with pytest.raises(CacheLost):
            outage.run(during_a_try)
    now += core_cache.PAUSE_SECONDS
    assert outage.run(lambda: 1) == 1
    assert outage.run(lambda: 2) == 2
    assert [caplog.text.count(event) for event in ("cache_lost", "cache_back")] == [1, 1]


def test_an_error_of_one_command_is_no_outage(outage: Outage) -> None:
    with pytest.raises(ValueError, match="of this command"):
        outage.run(lambda: int("of this command"))
    assert outage.run(lambda: 1) == 1


class Harm:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def key() -> Iterator[str]:
    key = f"test-{uuid4()}"
    yield key
    caches["default"].delete(key)


def test_nothing_from_the_cache_is_unpickled(key: str, tmp_path: Path) -> None:
    cache: Any = caches["default"]
    harm = tmp_path / "harm"
    cache._cache.get_client(write=True).set(cache.make_key(key), pickle.dumps(Harm(harm)))

    with pytest.raises(ValueError, match="decode"):
        cache.get(key)
    assert not harm.exists()


@pytest.mark.parametrize("value", [5, {"mode": "polling", "at": 1.5}, "text", None])
def test_a_value_is_read_as_it_was_stored(value: object, key: str) -> None:
    caches["default"].set(key, value, 60)
    assert caches["default"].get(key) == value
