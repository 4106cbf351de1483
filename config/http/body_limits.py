"""Limits the size of request bodies, and buffers chunked bodies, which Django does not read."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import IO, Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from config.api.envelope import message_response
from config.api.paths import API_PREFIX


def buffer_chunked_bodies(application: WSGIApplication) -> WSGIApplication:
    """WSGI middleware: reads the chunked body of an API request and sets its Content-Length.

    It reads at most one byte more than the limit, and `BodyLimitMiddleware` refuses such a body. It
    also removes the charset of the content type.
    """

    def buffered(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        _remove_charset(environ)
        if _is_chunked(environ) and environ.get("PATH_INFO", "").startswith(API_PREFIX):
            body = _read(environ["wsgi.input"], settings.API_MAX_BODY_BYTES + 1)
            environ["wsgi.input"] = BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return buffered


def _remove_charset(environ: WSGIEnvironment) -> None:
    """Removes the charset of the content type. All requests are read as UTF-8.

    Django decodes the query string with this charset, and fails before any view when it is `hex` or
    `utf-7`.
    """
    content_type = environ.get("CONTENT_TYPE", "")
    in_api = environ.get("PATH_INFO", "").startswith(API_PREFIX)
    if in_api or "charset" in content_type.lower():
        environ["CONTENT_TYPE"] = content_type.partition(";")[0]


def _is_chunked(environ: dict[str, Any]) -> bool:
    return not environ.get("CONTENT_LENGTH") and "HTTP_TRANSFER_ENCODING" in environ


def _read(stream: IO[bytes], most: int) -> bytes:
    body = b""
    while len(body) < most and (part := stream.read(most - len(body))):
        body += part
    return body


class BodyLimitMiddleware:
    """Refuses a request body over the limit with 413 `{message}`, without reading it.

    The limits apply to the API and to the merchant site, which accept requests before
    authentication.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        in_api = request.path.startswith(API_PREFIX)
        limit = settings.API_MAX_BODY_BYTES if in_api else settings.PAGES_MAX_BODY_BYTES
        if _body_bytes(request) > limit:
            return message_response(413, f"The request body is larger than {limit} bytes.")
        return self.get_response(request)


def _body_bytes(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
