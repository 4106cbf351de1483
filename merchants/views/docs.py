"""The public documentation: first calls, retries, top-ups, reconciling.

A member who is signed in sees it within the merchant site, with an example from the catalogue.
"""

import json
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from accounts.second_factor import must_show_factor
from catalogue.models import MAX_QUANTITY
from catalogue.selectors import example_purchase
from core.api.paths import API_BASE
from merchants.people.access import Member, find_member
from merchants.views.docs_content import (
    BOOKS,
    CODES,
    REASONS,
    RETRY_SNIPPETS,
    SNIPPET_NAMES,
    VERIFY,
    snippet,
)
from merchants.views.pages import show
from wallets.roots import public_key

RESPONSE_SECONDS = 35  # the service ends a request after 30, and a proxy needs a moment
EXAMPLE = {"product_id": 10, "quantity": 1}


def public_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page for everybody. It changes nothing, and refuses a POST before its body arrives."""
    return csrf_exempt(require_safe(view))


@public_page
def start(request: HttpRequest) -> HttpResponse:
    """The quick start: address, key and first calls."""
    return _show(
        request,
        "docs_start",
        "Docs: quick start",
        first=snippet("first_calls.sh"),
        example=json.dumps(example_purchase() if _reader(request) else EXAMPLE),
    )


@public_page
def retries(request: HttpRequest) -> HttpResponse:
    """Says what to do after each response of the API, with programs that do it."""
    programs = [
        {"file": name, "language": language, "text": snippet(name)}
        for name, language in RETRY_SNIPPETS.items()
    ]
    return _show(
        request,
        "docs_retries",
        "Docs: retry safely",
        codes=[
            {"code": code.value, "status": code.status.value, "advice": advice}
            for code, advice in CODES.items()
        ],
        reasons=[
            {"reason": reason.value, "means": reason.message, "advice": advice}
            for reason, advice in REASONS.items()
        ],
        programs=programs,
    )


@public_page
def topups(request: HttpRequest) -> HttpResponse:
    """Explains how to buy a top-up and wait for its delivery."""
    return _show(request, "docs_topups", "Docs: top-ups", program=snippet("wait_for_topup.py"))


@public_page
def abandoned(request: HttpRequest) -> HttpResponse:
    """Explains request_abandoned, and how to settle purchases with an unknown outcome."""
    return _show(request, "docs_abandoned", "Docs: reconcile purchases, and request_abandoned")


@public_page
def statements(request: HttpRequest) -> HttpResponse:
    """Explains how to verify a statement with its proof, and how a program downloads the books."""
    return _show(
        request,
        "docs_statements",
        "Docs: verify statements",
        program=snippet(VERIFY),
        command=f"python {VERIFY} statement-proof.json --key {public_key().hex()}",
        books=snippet(BOOKS),
        site=settings.PUBLIC_URL,
    )


@public_page
def live(request: HttpRequest) -> HttpResponse:
    """What to check before going live: retries, time-outs, limits, and what stays the same."""
    return _show(
        request,
        "docs_live",
        "Docs: go live",
        response_seconds=RESPONSE_SECONDS,
        max_quantity=MAX_QUANTITY,
    )


@public_page
def ledger_key(request: HttpRequest) -> HttpResponse:
    """The public key of signed roots, in hexadecimal. For everybody."""
    return HttpResponse(public_key().hex() + "\n", content_type="text/plain; charset=utf-8")


@public_page
def verify_statement(request: HttpRequest) -> HttpResponse:
    """The program that verifies a statement. For everybody."""
    return HttpResponse(snippet(VERIFY), content_type="text/plain; charset=utf-8")


@public_page
def snippet_file(request: HttpRequest, name: str) -> HttpResponse:
    """One program of the docs pages as a file; 404 for an unknown name."""
    if name not in SNIPPET_NAMES:
        raise Http404
    return HttpResponse(
        snippet(name),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _reader(request: HttpRequest) -> Member | None:
    """The member who reads, if the session has shown the second factor that the member has."""
    return None if must_show_factor(request) else find_member(request)


def _show(request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
    member = _reader(request)
    everywhere: dict[str, Any] = {
        "title": title,
        "here": template,
        "base_url": f"{settings.PUBLIC_URL}{API_BASE}",
        "window_minutes": settings.IDEMPOTENCY_IN_PROGRESS_SECONDS // 60,
        "keep_days": settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS,
    }
    name = f"merchants/{template}.html"
    if member is None:
        frame = {"frame": "merchants/bare.html"}
        return TemplateResponse(request, name, {**frame, **everywhere, **context})
    return show(request, member, name, frame="merchants/base.html", **everywhere, **context)
