"""The limits per minute count correctly, also when a counter or a connection is lost."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.cache import caches
from django.core.cache.backends.locmem import LocMemCache
from redis import Redis
from redis.exceptions import ResponseError

from accounts.rates import WINDOW, seconds_to_wait
from core import cache as core_cache
from core.cache import CacheLost, CountingCache
from tests.listeners import Reply, ScriptedCache, scripted_cache

LIMIT = 3
KINDS = ["shared", "local"]


@pytest.fixture
def counters() -> Any:
    """The cache that counts for this thread."""
    return caches["counters"]


@pytest.fixture
def server() -> Iterator[Redis]:
    with Redis.from_url(settings.REDIS_URL) as server:
        yield server


@pytest.fixture
def name(server: Redis) -> Iterator[str]:
    name = f"counter-{uuid4()}"
    yield name
    server.delete(name, f"{name}-next")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time, in a list that a test may change."""
    now = [1_800_000_000]
    monkeypatch.setattr("django_ratelimit.core.time.time", lambda: now[0])
    return now


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With a cache server, and without one."""
    if request.param == "local":
        use(LocMemCache(f"counters-{uuid4()}", {}), monkeypatch)
    return str(request.param)


def use(cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts in this cache."""
    monkeypatch.setattr("django_ratelimit.core.caches", {"counters": cache})


def wait(group: str = "group", key: object = 1, times: int = 1) -> int:
    """The wait after the last of these counts."""
    return [seconds_to_wait(group=group, key=key, limit=LIMIT) for _ in range(times)][-1]


def count(counters: Any, name: str) -> int:
    """Counts as django-ratelimit does."""
    added = counters.add(name, 1, 60)
    return 1 if added else counters.incr(name)


@contextmanager
def scripted(*replies: Reply) -> Iterator[tuple[ScriptedCache, CountingCache]]:
    """A cache with these replies, and its client, which waits for a tenth of a second."""
    with scripted_cache(replies) as server:
        cache = CountingCache(
            server.url, {"OPTIONS": {**settings.CACHE_TIMEOUTS, "socket_timeout": 0.1}}
        )
        try:
            yield server, cache
        finally:
            cache._connection.disconnect()


def test_one_more_than_the_limit_waits(kind: str, now: list[int]) -> None:
    assert [wait() for _ in range(LIMIT)] == [0] * LIMIT
    assert wait() > 0


def test_each_group_and_key_has_its_own_counter(kind: str, now: list[int]) -> None:
    wait(times=LIMIT)
    assert wait(key=2) == wait(group="other") == 0
    assert wait() > 0


def test_the_wait_ends_with_the_window(kind: str, now: list[int]) -> None:
    """And not a second earlier, whenever in it the limit was reached."""
    start = now[0]
    for second in range(2 * WINDOW):
        now[0], key = start + second, f"key-{second}"
        seconds = wait(key=key, times=LIMIT + 1)
        assert 1 <= seconds <= WINDOW
        now[0] += seconds - 1
        assert wait(key=key) == 1
        now[0] += 1
        assert wait(key=key) == 0


def test_keys_wait_for_different_seconds(now: list[int]) -> None:
    """Their owners do not return all at once."""
    assert len({wait(key=key, times=LIMIT + 1) for key in range(20)}) > 10


def test_a_clock_that_passes_the_window_while_it_counts_waits_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "accounts.rates.get_usage", lambda *_, **__: {"should_limit": True, "time_left": -1}
    )
    assert wait() == 1


def test_a_count_is_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one more for the first of a window, which says when the counter ends."""
    with scripted(b":1", b":1", b":2", b":3") as (server, cache):
        use(cache, monkeypatch)
        for _ in range(3):
            wait()
        assert server.commands == ["INCRBY", "EXPIRE", "INCRBY", "INCRBY"]


def test_a_name_in_the_cache_does_not_show_the_key(server: Redis) -> None:
    wait(key="2001:db8::1")
    prefix = getattr(settings, "RATELIMIT_CACHE_PREFIX")  # noqa: B009  (a setting of tests only)
    (name,) = server.scan_iter(f"{prefix}*", count=10_000)
    assert b"2001:db8" not in name


def test_two_names_are_counted_separately(counters: Any, name: str) -> None:
    count(counters, name)
    assert count(counters, f"{name}-next") == 1
    assert count(counters, name) == 2


def test_threads_count_together(name: str) -> None:
    def count_some(_: int) -> list[int]:
        return [count(caches["counters"], name) for _ in range(100)]

    with ThreadPoolExecutor(4) as threads:
        counts = [number for some in threads.map(count_some, range(4)) for number in some]
    assert sorted(counts) == list(range(1, 401))


def test_a_counter_ends(counters: Any, server: Redis, name: str) -> None:
    count(counters, name)
    assert 0 < server.ttl(name) <= 60
    server.expire(name, 30)
    count(counters, name)
    assert 0 < server.ttl(name) <= 30  # only the first count sets the end


def test_a_lost_counter_restarts_and_ends(counters: Any, server: Redis, name: str) -> None:
    count(counters, name)
    server.delete(name)
    assert count(counters, name) == 1
    assert 0 < server.ttl(name) <= 60


def test_a_lost_connection_loses_no_count(counters: Any, name: str) -> None:
    assert count(counters, name) == 1
    counters._connection._sock.shutdown(socket.SHUT_RDWR)
    assert count(counters, name) == 2
    assert count(counters, name) == 3


def test_a_connection_is_closed_with_its_thread(name: str) -> None:
    """And not at the next garbage collection."""
    opened: list[Any] = []

    def open_one() -> None:
        counters: Any = caches["counters"]
        count(counters, name)
        opened.append(counters._connection)
        assert opened[0].is_connected

    thread = threading.Thread(target=open_one)
    thread.start()
    thread.join()
    assert not opened[0].is_connected


def test_nothing_is_counted_while_the_cache_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(core_cache, "outage", core_cache.Outage())
    options = {"OPTIONS": settings.CACHE_TIMEOUTS}
    use(CountingCache("redis://127.0.0.1:1/0", options), monkeypatch)
    assert wait(times=LIMIT + 1) == 0
    assert caplog.text.count("cache_lost") == 1
    assert "rate_limit_not_counted" not in caplog.text


def test_a_refused_count_leaves_the_connection_open(
    counters: Any, server: Redis, name: str
) -> None:
    server.rpush(name, "no number")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        count(counters, name)
    opened = counters._connection._sock
    server.delete(name)
    assert count(counters, name) == 1
    assert counters._connection._sock is opened


def test_a_count_that_the_cache_refuses_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted(*[b"-MISCONF no disk"] * (LIMIT + 1)) as (server, cache):
        use(cache, monkeypatch)
        assert wait(times=LIMIT + 1) == 0
        assert server.connections == 1
    assert caplog.text.count("rate_limit_not_counted") == LIMIT + 1


def test_a_cache_that_still_reads_its_file_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left alone for a while, and logged once."""
    monkeypatch.setattr(core_cache, "outage", core_cache.Outage())
    loading = b"-LOADING Redis is loading the dataset in memory"
    with scripted(loading, loading) as (_server, cache):
        use(cache, monkeypatch)
        assert wait(times=LIMIT + 1) == 0
    assert caplog.text.count("cache_lost") == 1
    assert "rate_limit_not_counted" not in caplog.text


@pytest.mark.parametrize("reply", [b"$1\r\n5", b":5\r\n:6", b">2\r\n:1", b"", b":", b":-1", b":5x"])
def test_a_reply_that_is_no_number_closes_the_connection(
    reply: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is left of it must not pass for the next count."""
    with scripted(reply, b":7") as (server, cache):
        with pytest.raises(ResponseError):
            count(cache, "name")
        assert count(cache, "name") == 7
        assert server.connections == 2


def test_a_reply_in_pieces_is_read_whole() -> None:
    with scripted([b":", b"12", b"3\r", b"\n"]) as (_, cache):
        assert count(cache, "name") == 123


def test_a_late_reply_does_not_pass_for_the_next_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that is slow once is left alone for a while, and then counts on a new connection."""
    monkeypatch.setattr(core_cache, "outage", core_cache.Outage())
    monkeypatch.setattr(core_cache, "PAUSE_SECONDS", 0)
    with scripted([b"", 0.3, b":5\r\n"], b":8") as (server, cache):
        with pytest.raises(CacheLost):
            count(cache, "name")
        time.sleep(0.4)
        assert count(cache, "name") == 8
        assert (server.connections, server.commands) == (2, ["INCRBY", "INCRBY"])


def test_a_restarted_cache_is_counted_in_again() -> None:
    with scripted(b":2", None, b":3") as (server, cache):  # closes before it replies
        assert [count(cache, "name"), count(cache, "name")] == [2, 3]
        assert (server.connections, server.commands) == (2, ["INCRBY"] * 3)


def test_a_local_counter_may_be_dropped_while_it_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Django's cache in memory drops entries at random when it is full."""

    class Full(LocMemCache):
        def add(self, *arguments: Any, **options: Any) -> bool:
            added = super().add(*arguments, **options)
            self.clear()
            return added

    cache = Full(f"counters-{uuid4()}", {})
    use(cache, monkeypatch)
    assert wait() == 0
    monkeypatch.setattr(Full, "add", lambda *_, **__: False)
    assert wait() == 0
    monkeypatch.setattr(settings, "RATELIMIT_FAIL_OPEN", False)
    assert wait() > 0  # the control
