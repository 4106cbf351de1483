"""A page that says what went wrong, what to do, and the request id."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from structlog.contextvars import get_contextvars


def error_context(title: str, *texts: str, home: tuple[str, str]) -> dict[str, Any]:
    """The context of an error page's template."""
    label, address = home
    return {
        "title": title,
        "texts": texts,
        "home_label": label,
        "home_address": address,
        "request_id": get_contextvars().get("request_id"),
    }


def error_page(
    template: str,
    status: HTTPStatus,
    title: str,
    *texts: str,
    home: tuple[str, str],
    request: HttpRequest | None = None,
) -> HttpResponse:
    """The page of a site's template. `home` is the label and the address of the way out.

    With the request, the page offers to sign out and to sign in as another person.
    """
    context = {**error_context(title, *texts, home=home), "offer_to_switch": request is not None}
    # Context processors read the session and the user, so they run only where a form needs them.
    return HttpResponse(render_to_string(template, context, request), status=status)
