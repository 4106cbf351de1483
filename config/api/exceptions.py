"""The one place where an exception becomes an API answer."""

from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.views import csrf, defaults
from rest_framework import exceptions as drf
from rest_framework.response import Response

from config.api.envelope import API_PREFIX, failure, failure_response, message_response
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


# Fallbacks for what Django answers itself: unknown paths, bad hosts, failures outside a view.


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIX)


def _is_page(request: HttpRequest) -> bool:
    """People read the back office and the merchants' page; everything else answers programs."""
    return _is_merchants(request) or request.path.startswith("/admin/")


def _is_merchants(request: HttpRequest) -> bool:
    return request.path.startswith("/merchant/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    if _is_merchants(request):
        return defaults.bad_request(request, exception, "merchants/400.html")
    return message_response(400, "Bad request.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    if _is_merchants(request):
        return defaults.permission_denied(request, exception, "merchants/403.html")
    if _is_page(request):
        return defaults.permission_denied(request, exception)
    return message_response(403, "Forbidden.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW: most often a page that was open while somebody signed in or out."""
    if _is_merchants(request):
        return render(request, "merchants/csrf.html", status=403)
    return csrf.csrf_failure(request, reason)


def locked_out(request: HttpRequest, *details: object) -> HttpResponse:
    """AXES_LOCKOUT_CALLABLE: too many wrong passwords, whoever the name belongs to."""
    status = HTTPStatus.TOO_MANY_REQUESTS
    if _is_merchants(request):
        return render(request, "merchants/locked_out.html", status=status)
    return HttpResponse("Too many wrong passwords. Try again later.", status=status)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404"""
    if _is_merchants(request):
        return defaults.page_not_found(request, exception, "merchants/404.html")
    if _is_page(request):
        return defaults.page_not_found(request, exception)
    return message_response(404, "There is nothing at this path.")


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500"""
    if _is_api(request):
        return failure_response(ApiError(ErrorCode.SERVER_ERROR))
    if _is_merchants(request):
        return defaults.server_error(request, "merchants/500.html")
    if _is_page(request):
        return defaults.server_error(request)
    return message_response(500, "Something failed on our side.")
