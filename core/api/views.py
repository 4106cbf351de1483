"""The base class of every API view, and the response to a successful read."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import ViewSet

from core.api.envelope import json_response, message_response, success

_instances: dict[Any, Any] = {}


def _shared_instance(kind: Any) -> Any:
    """The instance of a class that keeps nothing of a request, made once."""
    if kind not in _instances:
        _instances[kind] = kind()
    return _instances[kind]


class ApiViewSet(ViewSet):
    """A view that refuses a wrong HTTP method before authentication.

    DRF authenticates first, but a wrong method never reaches the API (contract, "Response
    envelope").

    DRF would create the helpers below for each request, negotiate a format and look for a version:
    every response is JSON, and the version is part of the path
    (docs/performance.md).
    """

    http_method_names = ["get", "post", "head"]
    # Reads the row of the API key with more of the answer, for the request and the prefix and the
    # digest of the key (orders/look_ahead.py).
    look_ahead: Callable[[Request, str, str], list[dict[str, Any]]] | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(request.method or "")
        request.accepted_renderer = _shared_instance(self.renderer_classes[0])
        request.accepted_media_type = request.accepted_renderer.media_type
        (authenticator,) = map(_shared_instance, self.authentication_classes)
        request.user, request.auth = authenticator.authenticate(request)
        self.check_permissions(request)
        self.check_throttles(request)

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [_shared_instance(kind) for kind in self.authentication_classes]

    def get_permissions(self) -> list[BasePermission]:
        return [_shared_instance(kind) for kind in self.permission_classes]

    def get_throttles(self) -> list[BaseThrottle]:
        return [_shared_instance(kind) for kind in self.throttle_classes]

    def get_parsers(self) -> list[BaseParser]:
        return [_shared_instance(kind) for kind in self.parser_classes]

    def get_content_negotiator(self) -> BaseContentNegotiation:
        negotiation: BaseContentNegotiation = _shared_instance(self.content_negotiation_class)
        return negotiation


def ok(data: Any) -> HttpResponse:
    """The response to a successful read (200)."""
    return json_response(200, success(data))


def get_only(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Decorator of a view outside DRF that answers GET and HEAD; other methods get 405 `{message}`.

    The view changes nothing, so it is exempt from Django's CSRF check, which would read the body of
    a POST and respond with a page.
    """

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.method in ("GET", "HEAD"):
            return view(request)
        response = message_response(405, f'Method "{request.method}" not allowed.')
        response["Allow"] = "GET, HEAD"
        return response

    return guarded
