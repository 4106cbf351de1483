"""Counts what somebody does in a fixed window of time, in the cache that all processes share."""

import structlog
from django.http import HttpRequest
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError
from rest_framework.request import Request

from config.cache import CacheLost

logger = structlog.get_logger(__name__)

WINDOW = 60  # seconds


def seconds_to_wait(
    request: HttpRequest | Request, *, group: str, key: object, limit: int, times: int = 1
) -> int:
    """Counts `times` more for this key, and returns how many seconds its owner must wait.

    The result is 0 up to `limit` in the current window of a minute, and at least 1 beyond it.
    `group` says what is counted; each key has one counter in each group. While the cache is lost,
    nothing is counted and the result is 0: this limit protects the service from load, and a lost
    cache must not stop purchases.
    """
    wait = 0
    try:
        for _ in range(times):
            usage = get_usage(
                request,
                group=group,
                key=lambda group, request: str(key),
                rate=(limit, WINDOW),
                increment=True,
            )
            # The count is 0 when the cache lost the counter.
            if usage and usage["count"] and usage["should_limit"]:
                wait = max(1, usage["time_left"])  # the window may end within this second
    except CacheLost:  # logged once, by config/cache.py
        return 0
    except RedisError as error:
        logger.error("rate_limit_not_counted", cause=type(error).__name__)
        return 0
    return wait
