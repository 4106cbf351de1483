"""SharedCounters counts correctly, also when a counter or a connection is lost."""

import socket
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.cache.backends.locmem import LocMemCache
from redis import Redis

from accounts import counters as module
from accounts.counters import Counters, LocalCounters, SharedCounters


@pytest.fixture
def counters() -> SharedCounters:
    return SharedCounters(settings.REDIS_URL, settings.CACHE_TIMEOUTS)


@pytest.fixture
def server() -> Iterator[Redis]:
    with Redis.from_url(settings.REDIS_URL) as server:
        yield server


@pytest.fixture
def name(server: Redis) -> Iterator[str]:
    name = f"counter-{uuid4()}"
    yield name
    server.delete(name, f"{name}-next")
    cache.delete(name)


@pytest.mark.parametrize("kind", ["shared", "local"])
def test_a_counter_adds_up(kind: str, counters: SharedCounters, name: str) -> None:
    chosen: Counters = counters if kind == "shared" else LocalCounters()
    assert [chosen.add(name, number, seconds=60) for number in (1, 1, 5)] == [1, 2, 7]


def test_two_names_are_counted_separately(counters: SharedCounters, name: str) -> None:
    counters.add(name, 1, seconds=60)
    assert counters.add(f"{name}-next", 1, seconds=60) == 1
    assert counters.add(name, 1, seconds=60) == 2


def test_a_counter_ends(counters: SharedCounters, server: Redis, name: str) -> None:
    counters.add(name, 3, seconds=60)
    assert 0 < server.ttl(name) <= 60
    server.expire(name, 30)
    counters.add(name, 1, seconds=60)
    assert 0 < server.ttl(name) <= 30  # only the first count sets the end


def test_a_lost_counter_restarts_and_ends(
    counters: SharedCounters, server: Redis, name: str
) -> None:
    counters.add(name, 1, seconds=60)
    server.delete(name)
    assert counters.add(name, 1, seconds=60) == 1
    assert 0 < server.ttl(name) <= 60


def test_a_lost_connection_loses_no_count(counters: SharedCounters, name: str) -> None:
    assert counters.add(name, 1, seconds=60) == 1
    connection: Any = counters._connection
    connection._sock.shutdown(socket.SHUT_RDWR)
    assert counters.add(name, 1, seconds=60) == 2
    assert counters.add(name, 1, seconds=60) == 3


def test_a_connection_is_closed_with_its_thread(counters: SharedCounters, name: str) -> None:
    """And not at the next garbage collection."""
    opened: list[Any] = []

    def count() -> None:
        counters.add(name, 1, seconds=60)
        opened.append(counters._connection)
        assert opened[0].is_connected

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    assert not opened[0].is_connected


def test_a_local_counter_may_end_while_it_is_counted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`add` finds the counter of the last window, and `incr` does not."""
    local = LocMemCache(name, {})
    monkeypatch.setattr(module, "local_cache", local)
    LocalCounters().add(name, 3, seconds=60)
    with monkeypatch.context() as patched:
        add = local.add

        def add_late(*arguments: Any) -> bool:
            added = add(*arguments)
            local.touch(name, -1)
            return added

        patched.setattr(local, "add", add_late)
        local.add(name, 0, 60)
        with pytest.raises(ValueError, match="not found"):  # the control
            local.incr(name, 2)
        LocalCounters().add(name, 3, seconds=60)
        assert LocalCounters().add(name, 2, seconds=60) == 2
    assert LocalCounters().add(name, 1, seconds=60) == 3
