"""Responses to errors outside a view, as `{message}` JSON (contract, "Response envelope").

An unexpected error of the API is a `server_error` failure.
"""

from django.http import HttpRequest, HttpResponse

from core.api.envelope import failure_response, message_response
from core.api.errors import ApiError, ErrorCode
from core.api.paths import API_PREFIX


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    return message_response(400, "Bad request.")


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    return message_response(403, "Forbidden.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404"""
    answer = message_response(404, "There is nothing at this path.")
    if not request.path.startswith("/api"):  # a process with pages has a page for browsers here
        answer["Vary"] = "Accept"
    return answer


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500"""
    if request.path.startswith(API_PREFIX):
        return failure_response(ApiError(ErrorCode.SERVER_ERROR))
    return message_response(500, "Something failed on our side.")
