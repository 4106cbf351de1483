"""The base of every API view."""

from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from config.api.envelope import json_response, success


class ApiViewSet(ViewSet):
    """A view that refuses a wrong method before it asks who is calling.

    DRF authenticates first; the contract says that a wrong method never reaches the API.
    """

    http_method_names = ["get", "post", "head"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        method = (request.method or "").lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(request.method or "")
        super().initial(request, *args, **kwargs)


def ok(data: Any) -> HttpResponse:
    """A successful read (200)."""
    return json_response(200, success(data))
