"""What happens to every request before it reaches a view: its log line, and a limit on its size."""

from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

from config.api.envelope import API_PREFIX, message_response


class RequestLogMiddleware(RequestMiddleware):
    """Logs one line per request, and gives the answer the request id of that line.

    The path is logged without its query string: people paste keys into URLs.
    """

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {request.path}"

    def handle_response(self, request: HttpRequest, response: HttpResponse) -> None:
        request_id = structlog.contextvars.get_contextvars().get("request_id")
        if request_id:
            response["X-Request-Id"] = request_id
        super().handle_response(request, response)


class BodyLimitMiddleware:
    """Refuses an API request body over the limit before reading any of it (413)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (
            request.path.startswith(API_PREFIX)
            and _body_bytes(request) > settings.API_MAX_BODY_BYTES
        ):
            return message_response(
                413, f"The request body is larger than {settings.API_MAX_BODY_BYTES} bytes."
            )
        return self.get_response(request)


def _body_bytes(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
