"""Trust in the headers of proxies, and the address that the audit trail names."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.addresses import client_address_text, is_within, peer_address
from audit.actor import handling


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


class ActorMiddleware:
    """Tells the audit trail about the request. It comes after the authentication middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with handling(request, address_of=client_address_text):
            return self.get_response(request)
