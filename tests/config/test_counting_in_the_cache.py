"""The cache of counters: one round trip for each, and right when something is lost."""

import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from accounts.counting_cache import CountingRedisCache


@pytest.fixture
def cache() -> CountingRedisCache:
    """One whose pool may lend a single connection, so that any that is kept from it shows."""
    options: Any = settings.CACHES["counters"]["OPTIONS"]
    return CountingRedisCache(settings.REDIS_URL, {"OPTIONS": {**options, "max_connections": 1}})


@pytest.fixture
def key(cache: CountingRedisCache) -> Iterator[str]:
    key = f"counter-{uuid4()}"
    yield key
    cache.delete(key)


def test_it_counts_from_what_was_added(cache: CountingRedisCache, key: str) -> None:
    assert cache.add(key, 1, 60)
    assert [cache.incr(key), cache.incr(key)] == [2, 3]
    assert not cache.add(key, 1, 60)


def test_another_window_begins_while_the_first_is_counted(
    cache: CountingRedisCache, key: str
) -> None:
    cache.add(key, 1, 60)
    cache.incr(key)
    assert cache.add(f"{key}-next", 1, 60)
    assert cache.incr(f"{key}-next") == 2
    cache.delete(f"{key}-next")


def test_a_counter_that_the_cache_lost_begins_anew_and_ends(
    cache: CountingRedisCache, key: str
) -> None:
    cache.add(key, 1, 60)
    cache.delete(key)
    assert not cache.add(key, 1, 60)  # it does not know yet
    assert cache.incr(key) == 1
    client: Any = cache._cache
    assert 0 < client._kept.ttl(cache.make_key(key)) <= 60


def test_a_connection_that_was_lost_meanwhile_costs_no_count(
    cache: CountingRedisCache, key: str
) -> None:
    cache.add(key, 1, 60)
    assert cache.incr(key) == 2
    client: Any = cache._cache
    client._connection._sock.shutdown(socket.SHUT_RDWR)
    assert cache.incr(key) == 3
    assert cache.incr(key) == 4
