"""Trust in the headers of proxies."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.addresses import is_within, peer_address


class TrustedProxyMiddleware:
    """Removes `X-Forwarded-Proto` unless a trusted proxy sent it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "HTTP_X_FORWARDED_PROTO" in request.META:
            peer = peer_address(request)
            if peer is None or not is_within(peer, settings.TRUSTED_PROXIES):
                del request.META["HTTP_X_FORWARDED_PROTO"]
        return self.get_response(request)
