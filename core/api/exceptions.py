"""Turns every exception in an API view into a response."""

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from core.api.envelope import failure
from core.api.errors import ApiError, ErrorCode, ValidationFailed
from core.api.outcome import outcome_of

logger = structlog.get_logger(__name__)


# These requests are rejected before they reach the API (contract, "Response envelope").
BEFORE_THE_API = (drf.MethodNotAllowed, Http404, drf.NotFound, SuspiciousOperation)


def handle_exception(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's EXCEPTION_HANDLER: the response to an exception (contract, "Errors").

    An exception without an error code is logged, and becomes `server_error` (500).
    """
    if isinstance(error, BEFORE_THE_API):
        return _message(error)
    failed = as_api_error(error)
    outcome_of(context["request"]).error = failed
    if failed.code is ErrorCode.SERVER_ERROR:
        logger.error("unexpected_error", exc_info=error)
    # RFC 9110 requires WWW-Authenticate in a 401. A 429 has no Retry-After header: the contract
    # ("Errors") puts the wait into `error.retry_after_seconds` only.
    unauthorized = failed.code.status == HTTPStatus.UNAUTHORIZED
    headers = {"WWW-Authenticate": "Bearer"} if unauthorized else {}
    return Response(failure(failed), status=failed.code.status, headers=headers)


def as_api_error(error: Exception) -> ApiError:
    """The ApiError for an exception; `server_error` when the contract has no code for it."""
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
    if isinstance(error, RequestDataTooBig):  # a chunked body
        return Response({"message": "The request body is too large."}, status=413)
    if isinstance(error, SuspiciousOperation):  # such as too many query parameters
        return Response({"message": "Bad request."}, status=400)
    return Response({"message": "Not found."}, status=404)


def _flatten(detail: Any, name: str = "body") -> dict[str, list[str]]:
    """Flattens DRF's nested details to the contract's `fields`: `{"fields.12": ["message"]}`."""
    if not isinstance(detail, dict):
        messages = detail if isinstance(detail, list) else [detail]
        return {name: [str(message) for message in messages]}
    flat: dict[str, list[str]] = {}
    for key, value in detail.items():
        inner = str(key) if name == "body" else f"{name}.{key}"
        flat.update(_flatten(value, inner))
    return flat
