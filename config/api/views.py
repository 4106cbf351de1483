"""The base class of every API view, and the response to a successful read."""

from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from config.api.envelope import json_response, success


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
