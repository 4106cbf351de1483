"""The cache backend of the rate limit: Django's Redis cache, counting in one round trip.

django-ratelimit adds a counter and, if it already exists, increments it. Django's client needs
three round trips for that: SET, EXISTS, INCR. Here each thread remembers the counters that exist,
and the result of INCR shows when one was lost. Counting uses a connection of its own, because
redis-py's client takes one from the pool and instruments it for every command.
"""

from functools import cached_property
from typing import Any

from django.core.cache.backends.redis import RedisCache
from redis.exceptions import ConnectionError as ConnectionLost

from config import cache

MOST_REMEMBERED = 10_000


class CountingClient(cache.ImpatientClient):
    """For counters only: `add` may report a counter that the server has just lost as existing."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timeouts: dict[str, int] = {}  # in seconds, of the counters known to exist

    @cached_property
    def _kept(self) -> Any:
        return super().get_client(write=True)

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        """Returns one client for all commands. Django makes one for each command."""
        return self._kept

    def add(self, key: Any, value: Any, timeout: Any) -> bool:
        if key in self._timeouts:
            return False
        added = bool(super().add(key, value, timeout))
        if len(self._timeouts) >= MOST_REMEMBERED:
            self._timeouts.clear()
        self._timeouts[key] = timeout
        return added

    def incr(self, key: Any, delta: int) -> int:
        """Increments the counter. A counter that was lost starts again at `delta`."""
        count = self._count(key, delta)
        if count == delta:
            self._kept.expire(key, self._timeouts.get(key, 1))
        return count

    @cached_property
    def _connection(self) -> Any:
        pool = self._kept.connection_pool
        return pool.connection_class(**pool.connection_kwargs)  # not from the pool

    def _count(self, key: Any, delta: int) -> int:
        return cache.outage.run(lambda: self._increment(key, delta))

    def _increment(self, key: Any, delta: int) -> int:
        try:
            return self._send("INCRBY", key, delta)
        except ConnectionLost:  # a restart of the cache closed the connection: connect again
            return self._send("INCRBY", key, delta)

    def _send(self, *command: Any) -> int:
        self._connection.send_command(*command)
        number: int = self._connection.read_response()
        return number


class CountingRedisCache(RedisCache):
    """A cache of counters in Redis or Valkey."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = CountingClient
