"""One log line for each request, with the request id that the answer carries."""

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

from config.logs import request_logger

logger = structlog.get_logger(__name__)


class RequestLogMiddleware:
    """Logs one line per request, and gives the answer the request id of that line."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.log = request_logger(level=settings.LOG_LEVEL, secrets=settings.LOG_SECRETS)
        got_request_exception.connect(log_failure)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = str(uuid4())
        bind_contextvars(request_id=request_id)
        try:
            response = self.get_response(request)
            response["X-Request-Id"] = request_id
            with suppress(OSError, ValueError):  # a full disk must not cost a purchase its answer
                self._log(request, response)
        finally:
            clear_contextvars()
        return response

    def _log(self, request: HttpRequest, response: HttpResponse) -> None:
        write = self.log.error if response.status_code >= 500 else self.log.info
        write(
            "request_finished",
            code=response.status_code,
            request=_named(request),
            user_id=_user_id(request),
        )


def log_failure(*, request: HttpRequest, **signal: object) -> None:
    """Hears of an exception that no view has answered, while it is handled."""
    logger.exception("request_failed", request=_named(request))


def _named(request: HttpRequest) -> str:
    """Without the query string: people paste keys into URLs."""
    return f"{request.method} {request.path}"


def _user_id(request: HttpRequest) -> Any:
    """Whose request it was, where that was found out: the database is not asked for a line."""
    user = vars(request).get("user")
    if isinstance(user, LazyObject):
        user = vars(request).get("_cached_user")  # what Django found when it was asked
    return user.pk if user else None
