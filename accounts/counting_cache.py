"""The cache that counts requests: Django's Redis cache, counting in one round trip.

django-ratelimit adds a counter and, where it is there already, counts it up. Django's client makes
three round trips of that: SET, EXISTS, INCR. Here each thread remembers which counters it knows to
be there, and INCR itself tells when one is not. It counts over a connection of its own: the client
borrows one for each command, and measures and watches what it does with it.
"""

from functools import cached_property
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.retry import Retry

MOST_REMEMBERED = 10_000


class CountingClient(RedisCacheClient):
    """Only for counters: `add` may say of one that it is there when it was just lost."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timeouts: dict[str, int] = {}  # of the counters that were there

    @cached_property
    def _kept(self) -> Any:
        return super().get_client(write=True)

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        """Always the same; Django makes one for each command."""
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
        """Begins anew where the counter was lost."""
        count = self._count(key, delta)
        if count == delta:
            self._kept.expire(key, self._timeouts.get(key, 1))
        return count

    @cached_property
    def _connection(self) -> Any:
        pool = self._kept.connection_pool
        return pool.connection_class(**pool.connection_kwargs)  # none of those the pool may lend

    def _count(self, key: Any, delta: int) -> int:
        count: int
        try:
            self._connection.send_command("INCRBY", key, delta)
            count = self._connection.read_response()
        except ConnectionLost:  # since the last one: it connects anew with the next
            count = self._kept.incr(key, delta)
        return count


class CountingRedisCache(RedisCache):
    """Redis or Valkey, for counters."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = CountingClient


class ImpatientPool(ConnectionPool):
    """Connections that try a command once more at once, and never wait before they do.

    redis-py would back off for seconds. A lost cache may cost a request a moment only; the one
    retry is for a connection that a restart of the cache left stale.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(retry=Retry(NoBackoff(), 1), **options)
