"""Responses to errors outside a view: unknown paths, bad hosts, failed CSRF checks, lockouts.

The merchant site and the back office respond with pages, every other path with JSON
(`error_messages.py`).
"""

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import csrf, defaults

from config.http import error_messages


def _is_page(request: HttpRequest) -> bool:
    """Whether the path belongs to a site for people: the merchant site or the back office."""
    return _is_merchant_site(request) or request.path.startswith("/admin/")


def _is_merchant_site(request: HttpRequest) -> bool:
    return request.path.startswith("/merchant/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400"""
    if _is_merchant_site(request):
        return defaults.bad_request(request, exception, "merchants/400.html")
    return error_messages.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler403"""
    if _is_merchant_site(request):
        return defaults.permission_denied(request, exception, "merchants/403.html")
    if _is_page(request):
        return defaults.permission_denied(request, exception)
    return error_messages.permission_denied(request, exception)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """CSRF_FAILURE_VIEW. The usual cause is a page opened before the user signed in or out."""
    if _is_merchant_site(request):
        return render(request, "merchants/csrf.html", status=403)
    return csrf.csrf_failure(request, reason)


def locked_out(request: HttpRequest, *details: object) -> HttpResponse:
    """AXES_LOCKOUT_CALLABLE: the same 429 for known and unknown usernames.

    503 if the password was not checked because the process was checking another one.
    """
    busy = getattr(request, "sign_in_is_busy", False)
    return render(
        request,
        "merchants/locked_out.html" if _is_merchant_site(request) else "locked_out.html",
        {"busy": busy, "minutes": int(settings.AXES_COOLOFF_TIME.total_seconds() / 60)},
        status=HTTPStatus.SERVICE_UNAVAILABLE if busy else HTTPStatus.TOO_MANY_REQUESTS,
    )


def too_many_requests(request: HttpRequest, wait: int) -> HttpResponse:
    """429 for a merchant site page: the account must wait this many seconds."""
    return render(
        request,
        "merchants/429.html",
        {"wait": wait},
        status=HTTPStatus.TOO_MANY_REQUESTS,
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404"""
    if _is_merchant_site(request):
        return defaults.page_not_found(request, exception, "merchants/404.html")
    if _is_page(request):
        return defaults.page_not_found(request, exception)
    return error_messages.not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """handler500"""
    if _is_merchant_site(request):
        return defaults.server_error(request, "merchants/500.html")
    if _is_page(request):
        return defaults.server_error(request)
    return error_messages.server_error(request)
