"""The docs pages for a merchant's developers: first calls, retries, top-ups, reconciling."""

import json
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from catalogue.selectors import example_purchase
from core.api.paths import API_BASE
from merchants.people.access import Member, member_page
from merchants.views.docs_content import (
    CODES,
    REASONS,
    RETRY_SNIPPETS,
    SNIPPET_NAMES,
    VERIFY,
    snippet,
)
from merchants.views.pages import show
from wallets.roots import public_key


@require_safe
@member_page()
def start(request: HttpRequest, member: Member) -> HttpResponse:
    """The quick start: address, key and first calls."""
    return _show(
        request,
        member,
        "docs_start",
        "Docs: quick start",
        first=snippet("first_calls.sh"),
        example=json.dumps(example_purchase()),
    )


@require_safe
@member_page()
def retries(request: HttpRequest, member: Member) -> HttpResponse:
    """Says what to do after each response of the API, with programs that do it."""
    programs = [
        {"file": name, "language": language, "text": snippet(name)}
        for name, language in RETRY_SNIPPETS.items()
    ]
    return _show(
        request,
        member,
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


@require_safe
@member_page()
def topups(request: HttpRequest, member: Member) -> HttpResponse:
    """Explains how to buy a top-up and wait for its delivery."""
    return _show(
        request, member, "docs_topups", "Docs: top-ups", program=snippet("wait_for_topup.py")
    )


@require_safe
@member_page()
def abandoned(request: HttpRequest, member: Member) -> HttpResponse:
    """Explains request_abandoned, and how to settle purchases with an unknown outcome."""
    return _show(
        request, member, "docs_abandoned", "Docs: reconcile purchases, and request_abandoned"
    )


@require_safe
@member_page()
def statements(request: HttpRequest, member: Member) -> HttpResponse:
    """Explains how to verify a statement with its proof."""
    return _show(
        request,
        member,
        "docs_statements",
        "Docs: verify statements",
        program=snippet(VERIFY),
        command=f"python {VERIFY} statement-proof.json --key {public_key().hex()}",
    )


@require_safe
def ledger_key(request: HttpRequest) -> HttpResponse:
    """The public key of signed roots, in hexadecimal. For everybody."""
    return HttpResponse(public_key().hex() + "\n", content_type="text/plain; charset=utf-8")


@require_safe
def verify_statement(request: HttpRequest) -> HttpResponse:
    """The program that verifies a statement. For everybody."""
    return HttpResponse(snippet(VERIFY), content_type="text/plain; charset=utf-8")


@require_safe
@member_page()
def snippet_file(request: HttpRequest, member: Member, name: str) -> HttpResponse:
    """One program of the docs pages as a file; 404 for an unknown name."""
    if name not in SNIPPET_NAMES:
        raise Http404
    return HttpResponse(
        snippet(name),
        content_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _show(
    request: HttpRequest, member: Member, template: str, title: str, **context: Any
) -> HttpResponse:
    return show(
        request,
        member,
        f"merchants/{template}.html",
        title=title,
        here=template,
        base_url=f"{settings.PUBLIC_URL}{API_BASE}",
        window_minutes=settings.IDEMPOTENCY_IN_PROGRESS_SECONDS // 60,
        keep_days=settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS,
        **context,
    )
