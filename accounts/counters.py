"""Counters that all processes share, in Redis or Valkey: one round trip for each count, and two for
the first of a window.

redis-py's client takes a connection from its pool and instruments it for every command. Here each
thread has a connection of its own (docs/decisions/0064-thinner-layers.md).
"""

import threading
from functools import cache
from typing import Any, Protocol

from django.conf import settings
from django.core.cache import cache as local_cache
from redis.exceptions import ConnectionError as ConnectionLost

from core import cache as config_cache


class Counters(Protocol):
    """Counts by name."""

    def add(self, name: str, number: int, *, seconds: int) -> int:
        """Adds to a counter, which begins at 0 and ends `seconds` later. Returns its new value."""


class SharedCounters(threading.local):
    """Counters of a cache server. Raises CacheLost while it does not respond."""

    def __init__(self, url: str, timeouts: dict[str, float]) -> None:
        pool = config_cache.ImpatientPool.from_url(url, **timeouts)
        self._connection: Any = pool.connection_class(**pool.connection_kwargs)
        self._closing = _Closing(self._connection)

    def add(self, name: str, number: int, *, seconds: int) -> int:
        """See `Counters`. A process killed after INCRBY leaves a counter without an end."""
        return config_cache.outage.run(lambda: self._add(name, number, seconds))

    def _add(self, name: str, number: int, seconds: int) -> int:
        count = self._send("INCRBY", name, number)
        if count == number:
            self._send("EXPIRE", name, seconds)
        return count

    def _send(self, *command: Any) -> int:
        try:
            self._connection.send_command(*command)
            number: int = self._connection.read_response()
        except ConnectionLost:  # a restart of the cache closed the connection: connect again
            self._connection.send_command(*command)
            number = self._connection.read_response()
        return number


class _Closing:
    """Closes a connection when its thread ends. A connection of redis-py refers to itself, so it
    would stay open until the next garbage collection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __del__(self) -> None:
        self._connection.disconnect()


class LocalCounters:
    """Counters of a process that runs alone, without a cache server."""

    def add(self, name: str, number: int, *, seconds: int) -> int:
        """See `Counters`."""
        local_cache.add(name, 0, seconds)
        try:
            return local_cache.incr(name, number)
        except ValueError:  # it ended since `add`
            local_cache.set(name, number, seconds)
            return number


@cache
def counters() -> Counters:
    """The counters of this process."""
    if settings.REDIS_URL:
        return SharedCounters(settings.REDIS_URL, settings.CACHE_TIMEOUTS)
    return LocalCounters()
