"""The cache in Redis or Valkey, which may fail without slowing the service down.

Nothing that money depends on is in the cache. When it fails, the process does without it for
`PAUSE_SECONDS`: commands raise CacheLost at once instead of waiting for a timeout. After each pause
one thread tries again. An outage is logged when it begins and when it ends.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from functools import partial, wraps
from typing import Any, TypeVar

import redis
import structlog
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.redis import RedisCache
from django.utils.functional import Promise
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoAnswer
from redis.retry import Retry

from core.telemetry.metrics import CACHE_SECONDS

logger = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0  # after a failure
READ_BYTES = 4096  # a number has at most 23

T = TypeVar("T")


class CacheLost(ConnectionLost):
    """The cache does not respond, or failed a moment ago: this process does without it for now."""


class Outage:
    """The state of the cache for this process: whether it failed, and when to try it again."""

    def __init__(self) -> None:
        self._lost = False
        self._next_try = 0.0  # by the monotonic clock
        self._lock = threading.Lock()

    def run(self, command: Callable[[], T]) -> T:
        """Runs a command of the cache. Raises CacheLost if it fails, and at once during a pause."""
        if self._lost and not self._may_try():
            raise CacheLost("the cache failed a moment ago")
        since = time.perf_counter()
        try:
            result = command()
        except (ConnectionLost, NoAnswer, OSError) as error:
            CACHE_SECONDS.add(time.perf_counter() - since, "lost")
            self._begin(error)
            raise CacheLost(str(error)) from error
        CACHE_SECONDS.add(time.perf_counter() - since, "ok")
        if self._lost:
            self._end()
        return result

    def _may_try(self) -> bool:
        """Whether the pause is over. Then the next one begins, so only one thread tries."""
        with self._lock:
            if time.monotonic() < self._next_try:
                return False
            self._next_try = time.monotonic() + PAUSE_SECONDS
            return True

    def _begin(self, error: Exception) -> None:
        with self._lock:
            was_lost, self._lost = self._lost, True
            self._next_try = time.monotonic() + PAUSE_SECONDS
        if not was_lost:
            logger.error("cache_lost", cause=type(error).__name__)

    def _end(self) -> None:
        with self._lock:
            was_lost, self._lost = self._lost, False
        if was_lost:
            logger.warning("cache_back")


outage = Outage()


class ImpatientPool(redis.ConnectionPool):
    """Connections that retry a failed command once, immediately, and never after a timeout.

    By default, redis-py waits for seconds between retries. A cache that is down must not delay a
    request that long. The one retry replaces a connection that a restart of the cache has closed.
    """

    def __init__(self, **options: Any) -> None:
        retry = Retry(NoBackoff(), 1, supported_errors=(ConnectionLost,))
        super().__init__(retry=retry, **options)


class JSONSerializer:
    """Stores values as JSON. Django's default unpickles what it reads, and a pickle can run code:
    an attacker who can write to the cache could take over every process."""

    def dumps(self, value: Any) -> str:
        return json.dumps(value, default=_as_json)

    def loads(self, data: bytes) -> Any:
        """Raises ValueError if the data is not JSON."""
        return json.loads(data)


def _as_json(value: Any) -> Any:
    """A dataclass as its fields, and lazy text as text: the theme caches what its search found."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Promise):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be cached")


def _impatient(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of Django's cache, run through `outage`."""

    @wraps(method)
    def run(self: RedisCache, *arguments: Any, **options: Any) -> Any:
        return outage.run(partial(method, self, *arguments, **options))

    return run


class ImpatientRedisCache(RedisCache):
    """Django's cache in Redis or Valkey, which is not asked for a while after it failed."""

    add = _impatient(RedisCache.add)
    get = _impatient(RedisCache.get)
    set = _impatient(RedisCache.set)
    touch = _impatient(RedisCache.touch)
    delete = _impatient(RedisCache.delete)
    get_many = _impatient(RedisCache.get_many)
    has_key = _impatient(RedisCache.has_key)
    incr = _impatient(RedisCache.incr)
    set_many = _impatient(RedisCache.set_many)
    delete_many = _impatient(RedisCache.delete_many)
    clear = _impatient(RedisCache.clear)


class CountingCache(BaseCache):
    """The counters of django-ratelimit in Redis or Valkey: one round trip for each count, and two
    for the first of a window.

    django-ratelimit calls `add`, and then `incr` if the counter exists. Here `add` counts, and
    `incr` returns what `add` counted. Django gives each thread a cache of its own, so this one has
    one connection. redis-py connects it; commands and numbers pass through its socket directly,
    because redis-py instruments and parses each of them (docs/performance.md).
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        # RESP2 has no messages that a client did not ask for.
        pool = ImpatientPool.from_url(server, protocol=2, **params["OPTIONS"])
        self._connection: Any = pool.connection_class(**pool.connection_kwargs)
        self._closing = _Closing(self._connection)
        self._count = 0  # what `add` counted last

    def add(self, key: str, value: int, timeout: int, version: int | None = None) -> bool:  # type: ignore[override]
        """Adds to a counter, which ends `timeout` seconds after its first count. Returns whether
        this is the first. Raises CacheLost while the server does not respond.

        A process killed after INCRBY leaves a counter without an end.
        """
        self._count = outage.run(lambda: self._add(key, value, timeout))
        return self._count == value

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """The count that `add` got last."""
        return self._count

    def _add(self, key: str, value: int, timeout: int) -> int:
        count = self._send("INCRBY", key, value)
        if count == value:
            self._send("EXPIRE", key, timeout)
        return count

    def _send(self, command: str, key: str, number: int) -> int:
        """The number that the command returns. `key` is ASCII."""
        amount = str(number)
        line = (
            f"*3\r\n${len(command)}\r\n{command}\r\n${len(key)}\r\n{key}\r\n"
            f"${len(amount)}\r\n{amount}\r\n"
        ).encode("ascii")
        try:
            return self._exchange(line)
        except (ConnectionLost, ConnectionError):  # a restart of the cache closed the connection
            return self._exchange(line)

    def _exchange(self, line: bytes) -> int:
        """Sends the command and reads its number, on a new connection if there is none."""
        if self._connection._sock is None:
            self._connection.connect()
        try:
            self._connection._sock.sendall(line)
            reply = self._read_line()
        except BaseException:  # a late reply must not pass for the next count
            self._connection.disconnect()
            raise
        if reply[:1] == b":" and reply[1:].isdigit():
            return int(reply[1:])
        if reply.startswith(b"-LOADING "):  # after a restart
            raise ConnectionLost("the cache still reads its file")
        if reply[:1] != b"-":  # not an error: nobody knows what comes next
            self._connection.disconnect()
        raise ResponseError(reply.decode(errors="replace"))

    def _read_line(self) -> bytes:
        """A reply without its end. Raises ConnectionResetError if the server closes."""
        line = b""
        while not line.endswith(b"\r\n"):
            part: bytes = self._connection._sock.recv(READ_BYTES)
            if not part:
                raise ConnectionResetError("the cache closed the connection")
            line += part
        return line[:-2]


class _Closing:
    """Closes a connection when its thread ends. A connection of redis-py refers to itself, so it
    would stay open until the next garbage collection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __del__(self) -> None:
        self._connection.disconnect()
