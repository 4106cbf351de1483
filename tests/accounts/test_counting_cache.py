"""CountingRedisCache counts correctly, also when a counter or a connection is lost."""

import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from accounts.counting_cache import CountingRedisCache


@pytest.fixture
def cache() -> CountingRedisCache:
    """A cache whose pool has one connection: a test fails when it is not returned to the pool."""
    options: Any = settings.CACHES["counters"]["OPTIONS"]
    return CountingRedisCache(settings.REDIS_URL, {"OPTIONS": {**options, "max_connections": 1}})


@pytest.fixture
def key(cache: CountingRedisCache) -> Iterator[str]:
    key = f"counter-{uuid4()}"
    yield key
    cache.delete(key)


def test_a_counter_starts_at_the_added_value(cache: CountingRedisCache, key: str) -> None:
    assert cache.add(key, 1, 60)
    assert [cache.incr(key), cache.incr(key)] == [2, 3]
    assert not cache.add(key, 1, 60)


def test_two_windows_are_counted_separately(cache: CountingRedisCache, key: str) -> None:
    cache.add(key, 1, 60)
    cache.incr(key)
    assert cache.add(f"{key}-next", 1, 60)
    assert cache.incr(f"{key}-next") == 2
    cache.delete(f"{key}-next")


def test_a_lost_counter_restarts_and_expires(cache: CountingRedisCache, key: str) -> None:
    cache.add(key, 1, 60)
    cache.delete(key)
    assert not cache.add(key, 1, 60)  # the cache object does not know of the loss yet
    assert cache.incr(key) == 1
    client: Any = cache._cache
    assert 0 < client._kept.ttl(cache.make_key(key)) <= 60


def test_a_lost_connection_loses_no_count(cache: CountingRedisCache, key: str) -> None:
    cache.add(key, 1, 60)
    assert cache.incr(key) == 2
    client: Any = cache._cache
    client._connection._sock.shutdown(socket.SHUT_RDWR)
    assert cache.incr(key) == 3
    assert cache.incr(key) == 4
