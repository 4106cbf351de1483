"""Counts what somebody does in a fixed window of time, in the cache that all processes share."""

import time
from zlib import crc32

import structlog
from redis.exceptions import RedisError

from accounts.counters import counters
from core.cache import CacheLost

logger = structlog.get_logger(__name__)

WINDOW = 60  # seconds
PREFIX = "rate"  # of every counter's name


def seconds_to_wait(*, group: str, key: object, limit: int, times: int = 1) -> int:
    """Counts `times` more for this key, and returns how many seconds its owner must wait.

    The result is 0 up to `limit` in the current window of a minute, and at least 1 beyond it.
    `group` says what is counted; each key has one counter in each group. While the cache is lost,
    nothing is counted and the result is 0: this limit protects the service from load, and a lost
    cache must not stop purchases.
    """
    name = f"{PREFIX}:{group}:{key}"
    # Windows of different keys begin at different seconds: their owners do not return all at once.
    window, passed = divmod(int(time.time()) + crc32(name.encode()), WINDOW)
    try:
        count = counters().add(f"{name}:{window}", times, seconds=WINDOW)
    except CacheLost:  # logged once, by core/cache.py
        return 0
    except RedisError as error:
        logger.error("rate_limit_not_counted", cause=type(error).__name__)
        return 0
    return WINDOW - passed if count > limit else 0
