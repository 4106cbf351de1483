"""Trust in the headers and bodies of proxies, and the address that the audit trail names."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.addresses import client_address_text, is_within, peer_address
from audit.actor import handling
from config.http.anonymous_bodies import discard_in_turn


class TrustedProxyMiddleware:
    """Removes `X-Forwarded-Proto` unless a trusted proxy sent it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "HTTP_X_FORWARDED_PROTO" in request.META and not _is_from_a_proxy(request):
            del request.META["HTTP_X_FORWARDED_PROTO"]
        return self.get_response(request)


class UnreadBodyMiddleware:
    """Reads what is left of a body that a trusted proxy sends, before the response.

    A proxy may respond with 502 when the service closes the connection while it is still sending.
    BodyLimitMiddleware marks the response to an unread body with `Connection: close`.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.get("Connection") == "close" and _is_from_a_proxy(request):
            discard_in_turn(request)
        return response


class ActorMiddleware:
    """Tells the audit trail about the request. It comes after the authentication middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with handling(request, address_of=client_address_text):
            return self.get_response(request)


def _is_from_a_proxy(request: HttpRequest) -> bool:
    peer = peer_address(request)
    return peer is not None and is_within(peer, settings.TRUSTED_PROXIES)
