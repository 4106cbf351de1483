"""The requests-per-minute limit of a client (contract, "Limits")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.authentication import caller
from accounts.rates import seconds_to_wait
from accounts.usage import note_use
from core.api.errors import ApiError, ErrorCode

if TYPE_CHECKING:  # rest_framework.views imports this module: its settings name the class
    from rest_framework.views import APIView

CODES_PER_REQUEST = 500


class ClientRateThrottle(BaseThrottle):
    """Counts in the shared cache. If the cache fails, requests pass and the failure is logged."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Raises `rate_limited` with `retry_after_seconds`; otherwise True."""
        note_use(caller(request))
        wait = _count(request)
        if wait:
            raise ApiError(ErrorCode.RATE_LIMITED, retry_after_seconds=wait)
        return True


def count_codes(request: Request, codes: int) -> None:
    """Counts a response that contains `codes` voucher codes: one more request for every 500.

    A page of 100 orders may hold 10,000 codes, and opening them takes as long as hundreds of other
    requests. The response itself is never refused; the client's next requests may be.
    """
    if codes >= CODES_PER_REQUEST:
        _count(request, times=codes // CODES_PER_REQUEST)


def _count(request: Request, times: int = 1) -> int:
    client = caller(request)
    return seconds_to_wait(
        group="api",
        key=client.pk,
        limit=client.rate_limit_per_minute,
        times=times,
    )
