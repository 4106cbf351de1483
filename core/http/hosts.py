"""Refuses requests for other hosts than ALLOWED_HOSTS."""

from typing import Any

from django.http import HttpRequest, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware

MOST_HOSTS = 100  # with ports, which the caller chooses


class AllowedHostsMiddleware(CommonMiddleware):
    """Django's middleware, which remembers the values of Host that it has allowed.

    The service has none of the other settings that it reads before a request: no redirect to
    `www.`, no refused user agents, no host from a proxy's header (tests/core/test_hosts.py).
    """

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        self.allowed: set[str] = set()

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        """Raises DisallowedHost."""
        host = request.META.get("HTTP_HOST")
        if host in self.allowed:
            return None
        response = super().process_request(request)
        if host is not None:
            if len(self.allowed) >= MOST_HOSTS:
                self.allowed.clear()
            self.allowed.add(host)
        return response
