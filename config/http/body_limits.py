"""How large a request body may be, and chunked bodies, which Django does not read by itself."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import IO, Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from config.api.envelope import API_PREFIX, message_response


def measured_bodies(application: WSGIApplication) -> WSGIApplication:
    """The same application; a chunked body of an API request gets the length it turns out to have.

    Read to one byte past the limit at most, which `BodyLimitMiddleware` then refuses.
    """

    def measured(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        _forget_charset(environ)
        if _is_chunked(environ) and environ.get("PATH_INFO", "").startswith(API_PREFIX):
            body = _read(environ["wsgi.input"], settings.API_MAX_BODY_BYTES + 1)
            environ["wsgi.input"] = BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return measured


def _forget_charset(environ: WSGIEnvironment) -> None:
    """Django would read the query string by the charset that a request names, and fails on some
    (`hex`, `utf-7`) before any view could answer. Ours are UTF-8, whatever is claimed."""
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


def _body_bytes(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
