"""Counts what somebody does in a fixed window of time, in the cache that all processes share."""

import structlog
from django.http import HttpRequest
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError
from rest_framework.request import Request

logger = structlog.get_logger(__name__)

WINDOW = 60  # seconds


def seconds_to_wait(
    request: HttpRequest | Request, *, group: str, key: object, limit: int, times: int = 1
) -> int:
    """Counts `times` more for this key, and returns how many seconds its owner must wait.

    0 means: not more than `limit` in the current window of a minute. Otherwise at least 1. `group`
    says what is counted; each key has one counter in each group. If the cache fails, nothing is
    counted, the failure is logged, and the answer is 0.
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
    except (RedisError, OSError) as error:
        logger.error("rate_limit_not_counted", cause=type(error).__name__)
        return 0
    return wait
