"""Counts what a client, an account or a network does, with django-ratelimit, in the cache that all
processes share."""

import structlog
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError

from core.cache import CacheLost

logger = structlog.get_logger(__name__)

WINDOW = 60  # seconds


def seconds_to_wait(*, group: str, key: object, limit: int) -> int:
    """Counts one more for this key, and returns how many seconds its owner must wait.

    The result is 0 up to `limit` in the current window of a minute, and at least 1 beyond it.
    `group` says what is counted; each key has one counter in each group. While the cache is lost,
    nothing is counted and the result is 0: this limit protects the service from load, and a lost
    cache must not stop purchases.
    """
    try:
        usage = get_usage(
            None,
            group=group,
            key=lambda group, request: str(key),
            rate=(limit, WINDOW),
            increment=True,
        )
    except CacheLost:  # logged once, by core/cache.py
        return 0
    except RedisError as error:
        logger.error("rate_limit_not_counted", cause=type(error).__name__)
        return 0
    if usage is None or not usage["should_limit"]:
        return 0
    rest: int = usage["time_left"] + 1  # the window includes the second in which it ends
    return max(1, rest)
