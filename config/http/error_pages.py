"""What Django answers itself: unknown paths, bad hosts, refused forms, failures outside a view.

The API answers with JSON, the two sites with a page of their own, and everything else with
`{message}` (contract, "Response envelope").
"""

from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import csrf, defaults

from config.api.envelope import API_PREFIX, failure_response, message_response
from config.api.errors import ApiError, ErrorCode


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
