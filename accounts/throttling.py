"""The requests-per-minute limit of a client (contract, "Limits")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.authentication import caller
from accounts.usage import note_use
from config.api.errors import ApiError, ErrorCode

if TYPE_CHECKING:  # rest_framework.views imports this module: its settings name the class
    from rest_framework.views import APIView

logger = structlog.get_logger(__name__)


class ClientRateThrottle(BaseThrottle):
    """Counts in the shared cache. If the cache fails, requests pass and the failure is logged."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Raises `rate_limited` with `retry_after_seconds`; otherwise True."""
        client = caller(request)
        note_use(client)
        try:
            usage = get_usage(
                request,
                group="api",
                key=lambda group, request: str(client.pk),
                rate=(client.rate_limit_per_minute, 60),
                increment=True,
            )
        except (RedisError, OSError) as error:
            logger.error("rate_limit_not_counted", cause=type(error).__name__)
            return True
        if usage is None or usage["count"] == 0:  # the cache lost the counter
            return True
        if usage["should_limit"]:
            # At least 1: the window may end within this second.
            raise ApiError(ErrorCode.RATE_LIMITED, retry_after_seconds=max(1, usage["time_left"]))
        return True
