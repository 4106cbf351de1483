"""Counts and times the requests of this process (core/telemetry/metrics.py)."""

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from core.telemetry.metrics import REQUEST_SECONDS, REQUESTS

# Callers choose paths and methods, so a label shows only those that the service knows.
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
OTHER = "other"


class RequestMetricsMiddleware:
    """Counts each response by the pattern of its URL, its method and its status.

    The route is `other` for a path that matches no pattern: static files and unknown paths.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        since = time.perf_counter()
        response = self.get_response(request)
        seconds = time.perf_counter() - since
        match = request.resolver_match
        route = match.route if match else OTHER
        method = request.method if request.method in METHODS else OTHER
        REQUESTS.add(route, method, response.status_code)
        REQUEST_SECONDS.add(seconds, route, method)
        return response
