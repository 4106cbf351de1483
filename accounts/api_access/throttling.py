"""The requests-per-minute limits of a client (contract, "Limits") and of an account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.api_access.authentication import caller
from accounts.api_access.usage import note_use
from accounts.rates import seconds_to_wait
from core.api.errors import ApiError, ErrorCode

if TYPE_CHECKING:  # rest_framework.views imports this module: its settings name the class
    from rest_framework.views import APIView

    from accounts.models import ApiClient

ACCOUNT_TIMES = 5  # as many requests as one client with the default limit


class ClientRateThrottle(BaseThrottle):
    """Counts in the shared cache. If the cache fails, requests pass and the failure is logged."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Raises `rate_limited` with `retry_after_seconds`; otherwise True."""
        client = caller(request)
        note_use(client)
        wait = _count_client(client) or _count_account(client)
        if wait:
            raise ApiError(ErrorCode.RATE_LIMITED, retry_after_seconds=wait)
        return True


def _count_client(client: ApiClient) -> int:
    return seconds_to_wait(group="api", key=client.pk, limit=client.rate_limit_per_minute)


def _count_account(client: ApiClient) -> int:
    """Many clients of one account together have a limit, too. It never is below that of a client,
    which `GET /ping` promises: django-ratelimit has a counter for each limit, so a client with more
    uses up nothing of the others. An only client is not counted again: it has its own limit, and
    each count is a round trip."""
    if client.is_only_client:
        return 0
    limit = ACCOUNT_TIMES * settings.API_DEFAULT_RATE_LIMIT_PER_MINUTE
    return seconds_to_wait(
        group="api of an account",
        key=client.account_id,
        limit=max(limit, client.rate_limit_per_minute),
    )
