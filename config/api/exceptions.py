"""The one place where an exception becomes an API answer."""

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from config.api.envelope import failure
from config.api.errors import ApiError, ErrorCode, ValidationFailed

logger = structlog.get_logger(__name__)


def handle_exception(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER. Every failure of the API is answered here, and no other way."""
    if isinstance(error, drf.MethodNotAllowed | Http404 | drf.NotFound | SuspiciousOperation):
        return _message(error)
    failed = as_api_error(error)
    if failed.code is ErrorCode.SERVER_ERROR:
        logger.error("unexpected_error", exc_info=error)
    # RFC 9110 wants a 401 to name the scheme it would accept.
    unauthorized = failed.code.status == HTTPStatus.UNAUTHORIZED
    headers = {"WWW-Authenticate": "Bearer"} if unauthorized else {}
    return Response(failure(failed), status=failed.code.status, headers=headers)


def as_api_error(error: Exception) -> ApiError:
    """Names any exception in the contract's words; what has no name is `server_error`."""
    match error:
        case ApiError():
            return error
        case drf.NotAuthenticated():
            return ApiError(ErrorCode.MISSING_TOKEN)
        case drf.AuthenticationFailed():
            return ApiError(ErrorCode.INVALID_TOKEN)
        case drf.UnsupportedMediaType():
            return ValidationFailed(
                {"body": ["Send the body as `Content-Type: application/json`."]}
            )
        case drf.ValidationError():
            return ValidationFailed(_flatten(error.detail))
        case drf.ParseError() | BadRequest() | MultiPartParserError():
            return ValidationFailed({"body": ["The request could not be read."]})
        case _:
            return ApiError(ErrorCode.SERVER_ERROR)


def _message(error: Exception) -> Response:
    if isinstance(error, drf.MethodNotAllowed):
        return Response({"message": str(error.detail)}, status=error.status_code)
    if isinstance(error, SuspiciousOperation):  # such as a thousand query parameters
        return Response({"message": "Bad request."}, status=400)
    return Response({"message": "Not found."}, status=404)


def _flatten(detail: Any, name: str = "body") -> dict[str, list[str]]:
    """Turns DRF's nested details into the contract's flat `fields`: `fields.12: [sentence]`."""
    if not isinstance(detail, dict):
        sentences = detail if isinstance(detail, list) else [detail]
        return {name: [str(sentence) for sentence in sentences]}
    flat: dict[str, list[str]] = {}
    for key, value in detail.items():
        inner = str(key) if name == "body" else f"{name}.{key}"
        flat.update(_flatten(value, inner))
    return flat
