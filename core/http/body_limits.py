"""Limits of request bodies. A declared length is checked before anything is read; a chunked body
of the API is counted while the view reads it.

The API reads a body after authentication, in the view. Pages read theirs in Django's CSRF check,
so `BodyLimitMiddleware` must come before it in MIDDLEWARE.
"""

from collections.abc import Callable, Iterable
from io import BufferedIOBase
from typing import IO, Any, TypeVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve
from django.utils.translation import gettext as _

from core.api.envelope import message_response
from core.api.json import LENGTH_IS_A_LIMIT
from core.api.paths import API_PREFIX
from core.http.anonymous_bodies import read_in_turn

View = TypeVar("View", bound=Callable[..., Any])


def accepts_bodies_up_to(limit: int) -> Callable[[View], View]:
    """Decorator of a view that takes larger bodies than MAX_BODY_BYTES from signed-in people."""

    def decorate(view: View) -> View:
        view.max_body_bytes = limit  # type: ignore[attr-defined]
        return view

    return decorate


class BodyLimitMiddleware:
    """Refuses a body over the limit of its path with 413 `{message}`, without reading it.

    It also reads the body of a visitor who has not signed in, before the CSRF check does, and
    responds with 503 while another visitor's body is slow (`core/http/anonymous_bodies.py`).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        limit = settings.MAX_BODY_BYTES
        if _body_bytes(request) > limit:
            limit = _limit_of_path(request.path_info)
        too_large = _body_bytes(request) > limit
        response = _too_large(limit) if too_large else self.get_response(request)
        if _has_unread_body(request, response):
            # The server closes the connection, and the client must not send its next request there.
            response["Connection"] = "close"
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], *arguments: object
    ) -> HttpResponse | None:
        """Only Django's CSRF check reads a body before the view, so exempt views need nothing."""
        length = _body_bytes(request)
        if length == 0 or getattr(view, "csrf_exempt", False) or request.user.is_authenticated:
            return None
        if length > settings.MAX_BODY_BYTES:
            return _too_large(settings.MAX_BODY_BYTES)
        if not read_in_turn(request):
            return message_response(503, _("The form could not be read now. Please try again."))
        return None


def lazy_chunked_bodies(application: WSGIApplication) -> WSGIApplication:
    """WSGI middleware: lets an API view read a chunked body, which Django ignores.

    Django reads as many bytes as Content-Length says, and a chunked body has no Content-Length. The
    middleware sets Content-Length to the limit; reading ends after the last chunk. The view reads
    the body after authentication. Outside the API no view reads a chunked body.
    """

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        _remove_charset(environ)
        if _is_chunked(environ) and environ.get("PATH_INFO", "").startswith(API_PREFIX):
            environ["wsgi.input"] = _ChunkedBody(environ["wsgi.input"])
            environ["CONTENT_LENGTH"] = str(settings.MAX_BODY_BYTES)
            environ[LENGTH_IS_A_LIMIT] = True
        return application(environ, start_response)

    return wrapped


class _ChunkedBody(BufferedIOBase):
    """The body of a chunked request. Raises RequestDataTooBig when it exceeds the limit."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int | None = -1) -> bytes:
        size = settings.MAX_BODY_BYTES if size is None or size < 0 else size
        body = b""
        while len(body) < size and (part := self._stream.read(size - len(body))):
            body += part
        if len(body) == size and self._stream.read(1):
            # A proxy is still sending what it has buffered. It would respond with 502.
            self._stream.read(2 * settings.MAX_BODY_BYTES)
            raise RequestDataTooBig
        return body


def _remove_charset(environ: WSGIEnvironment) -> None:
    """Removes the charset of the content type. All requests are read as UTF-8.

    Django decodes the query string with this charset, and fails before any view when it is `hex` or
    `utf-7`.
    """
    content_type = environ.get("CONTENT_TYPE", "")
    in_api = environ.get("PATH_INFO", "").startswith(API_PREFIX)
    if in_api or "charset" in content_type.lower():
        environ["CONTENT_TYPE"] = content_type.partition(";")[0]


def _is_chunked(environ: WSGIEnvironment) -> bool:
    return not environ.get("CONTENT_LENGTH") and "HTTP_TRANSFER_ENCODING" in environ


def _limit_of_path(path: str) -> int:
    try:
        view = resolve(path).func
    except Resolver404:
        view = None
    return getattr(view, "max_body_bytes", settings.MAX_BODY_BYTES)


def _body_bytes(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _has_unread_body(request: HttpRequest, response: HttpResponse) -> bool:
    if _body_bytes(request) == 0:
        return "HTTP_TRANSFER_ENCODING" in request.META  # chunked, outside the API
    # A chunked body over the limit was read up to the limit.
    return not getattr(request, "_read_started", False) or response.status_code == 413


def _too_large(limit: int) -> HttpResponse:
    return message_response(413, f"The request body is larger than {limit} bytes.")
