"""The base class of every API view, and the response to a successful read."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from config.api.envelope import json_response, message_response, success


class ApiViewSet(ViewSet):
    """A view that refuses a wrong HTTP method before authentication.

    DRF authenticates first, but a wrong method never reaches the API (contract, "Response
    envelope").
    """

    http_method_names = ["get", "post", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(request.method or "")
        super().initial(request, *args, **kwargs)


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
