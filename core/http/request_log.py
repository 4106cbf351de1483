"""The request log: one line per request, with the request id of the response."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.utils.functional import LazyObject
from structlog.contextvars import bind_contextvars, clear_contextvars

from core.telemetry.logs import DirectLogger

logger = structlog.get_logger(__name__)

LONGEST_PATH = 300  # characters


class RequestLogMiddleware:
    """Logs one line per request and sets X-Request-Id of the response to the line's request id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.log = DirectLogger(
            "core.requests", level=settings.LOG_LEVEL, secrets=settings.LOG_SECRETS
        )
        got_request_exception.connect(log_failure)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = str(uuid4())
        bind_contextvars(request_id=request_id)
        try:
            response = self.get_response(request)
            response["X-Request-Id"] = request_id
            with suppress(OSError, ValueError):  # a full disk must not lose the response
                self._log(request, response)
        finally:
            clear_contextvars()
        return response

    def _log(self, request: HttpRequest, response: HttpResponse) -> None:
        write = self.log.error if response.status_code >= 500 else self.log.info
        write(
            "request_finished",
            code=response.status_code,
            request=_method_and_path(request),
            user_id=_user_id(request),
        )


def log_failure(*, request: HttpRequest, **signal: object) -> None:
    """Receiver of got_request_exception: logs an exception that no view handled."""
    logger.exception("request_failed", request=_method_and_path(request))


def _method_and_path(request: HttpRequest) -> str:
    """The method and the path without the query string, because people paste keys into URLs.

    Container runtimes cut long lines, so the path is cut.
    """
    return f"{request.method} {request.path[:LONGEST_PATH]}"


def _user_id(request: HttpRequest) -> Any:
    """The id of the user or API client; None when unknown. The log never loads a lazy user."""
    user = vars(request).get("user")
    if isinstance(user, LazyObject):
        user = vars(request).get("_cached_user")  # set once Django has loaded the user
    return user.pk if user else None
