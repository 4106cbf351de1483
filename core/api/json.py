"""Renders JSON responses, and parses JSON bodies strictly, for Django REST framework."""

import json
from decimal import Decimal, InvalidOperation
from typing import IO, Any, NoReturn

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from core.api.errors import ValidationFailed
from core.json_output import dumps

JSON_MEDIA_TYPE = "application/json"
MAX_DEPTH = 32  # a purchase has two levels
# Set in the WSGI environment when Content-Length is not the length of the body (chunked bodies).
LENGTH_IS_A_LIMIT = "voucher.length_is_a_limit"


class ExactJSONRenderer(BaseRenderer):
    """Renders the body of every API response."""

    media_type = JSON_MEDIA_TYPE
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        return b"" if data is None else dumps(data)


class StrictJSONParser(BaseParser):
    """Parses a request body into one JSON object.

    Anything else is `validation_failed` (422): invalid UTF-8, duplicate names, NaN and Infinity,
    excessive nesting, numbers too large to parse, and NUL characters or lone surrogates, which
    PostgreSQL cannot store.
    """

    media_type = JSON_MEDIA_TYPE

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None
    ) -> dict[str, Any]:
        body = stream.read()
        if len(body) < _declared_length(parser_context):  # the connection closed early
            raise _bad_body("The body ended before its Content-Length.")
        return parse_object(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`. Raises ValidationFailed with the cause in `fields.body`."""
    try:
        text = body.decode("utf-8")
        value = _STRICT.decode(text)
        _refuse_unstorable(value)
    except UnicodeDecodeError:
        raise _bad_body("The body is not valid UTF-8.") from None
    except RecursionError:
        raise _bad_body("The body is nested too deeply.") from None
    except _Refused as refused:
        raise _bad_body(str(refused)) from None
    except ValueError:  # malformed, or a number of thousands of digits
        raise _bad_body("The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise _bad_body("The body must be a JSON object.")
    return value


class JSONOnly(BaseContentNegotiation):
    """Ignores the Accept header: every response is JSON. Only a JSON request body has a parser."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        return parsers[0] if content_type == JSON_MEDIA_TYPE else None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


class _Refused(Exception):
    pass


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of more than eighteen digits
        raise _Refused("A number is too large.") from None


def _refuse_constant(name: str) -> NoReturn:
    raise _Refused(f"{name} is not a JSON number.")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused("A name appears twice in one object.")
    return members


# Built once; json.loads would build a decoder for each body.
_STRICT = json.JSONDecoder(
    parse_float=_decimal, parse_constant=_refuse_constant, object_pairs_hook=_refuse_duplicates
)


def _refuse_unstorable(value: Any, depth: int = 0) -> None:
    """Refuses NUL and lone surrogates, which PostgreSQL cannot store, and excessive nesting."""
    if depth > MAX_DEPTH:  # deeper values could exhaust the stack of later recursive code
        raise RecursionError
    if isinstance(value, str):
        surrogate = not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value)
        if surrogate or "\x00" in value:
            raise _Refused("A string contains a NUL character or a lone surrogate.")
    elif isinstance(value, dict):
        for key, member in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _refuse_unstorable(member, depth + 1)


def _declared_length(parser_context: Any) -> int:
    """Content-Length, or 0 for a chunked body."""
    meta = parser_context["request"].META
    return 0 if LENGTH_IS_A_LIMIT in meta else int(meta.get("CONTENT_LENGTH") or 0)


def _bad_body(message: str) -> ValidationFailed:
    return ValidationFailed({"body": [message]})
