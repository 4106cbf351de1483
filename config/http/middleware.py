"""What happens to every request before it reaches a view: its log line, and a limit on its size."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import structlog
from django.conf import settings
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers
from django.utils.functional import LazyObject
from structlog.contextvars import bind_contextvars, clear_contextvars

from config.api.envelope import API_PREFIX, message_response
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


class BodyLimitMiddleware:
    """Refuses a request body over the limit before reading any of it (413): of the API, and of the
    merchants' page, where anybody may send one before they are known."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        limit = None
        if request.path.startswith(API_PREFIX):
            limit = settings.API_MAX_BODY_BYTES
        elif request.path.startswith("/merchant/"):
            limit = settings.MERCHANT_MAX_BODY_BYTES
        if limit is not None and _body_bytes(request) > limit:
            return message_response(413, f"The request body is larger than {limit} bytes.")
        return self.get_response(request)


class ApiOverHttpsMiddleware:
    """Refuses the API over plain HTTP (403) where the service is reached by HTTPS.

    A redirect would be followed as a GET by some clients, and the key has been in the open by then:
    better that the very first call of a program fails.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.HTTPS and request.path.startswith(API_PREFIX) and not request.is_secure():
            return message_response(403, "Use https: this request and its key came unencrypted.")
        return self.get_response(request)


class PageHeadersMiddleware:
    """Tells browsers that pages for people load nothing from elsewhere, send nothing there, stand
    in no frame and are kept nowhere: they show players, money, codes and keys.

    In the back office the theme's Alpine evaluates the expressions in its templates, and the
    theme's colours are a style in the page: hence the two `unsafe`. The API's page has a style in
    it, too. The merchants' page needs neither.

    Answers of the API are kept nowhere either: they hold codes, and a poll wants what is now.
    """

    STRICT = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    POLICIES = {
        "/admin/": STRICT
        | {"script-src": "'self' 'unsafe-eval'", "style-src": "'self' 'unsafe-inline'"},
        "/merchant/": STRICT,
        "/docs/": STRICT | {"style-src": "'self' 'unsafe-inline'"},
    }

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.headers = {
            prefix: "; ".join(f"{name} {sources}" for name, sources in policy.items())
            for prefix, policy in self.POLICIES.items()
        }

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path_info.startswith(API_PREFIX):
            response["Cache-Control"] = "no-store"
            return response
        for prefix, policy in self.headers.items():
            if request.path_info.startswith(prefix):  # wherever the service is mounted
                response["Content-Security-Policy"] = policy
                response["Permissions-Policy"] = "camera=(), geolocation=(), microphone=()"
                add_never_cache_headers(response)
        return response


def _body_bytes(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
