"""The public documentation: first calls, retries, top-ups, reconciling.

A member who is signed in sees it within the merchant site, with an example from the catalogue.
"""

import json
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext, ngettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from accounts.models import ApiKey
from accounts.sign_in.second_factor import must_show_factor
from catalogue.models import MAX_QUANTITY
from catalogue.selectors import example_purchase
from core.api.advice import CODES, REASONS
from core.api.envelope import success
from core.api.paths import API_BASE
from core.texts import lazy
from merchants.docs.api_reference import reference, text_html
from merchants.docs.docs_content import (
    BOOKS,
    RECONCILE_SNIPPETS,
    RETRY_SNIPPETS,
    SNIPPET_NAMES,
    VERIFY,
    WAIT_SNIPPETS,
    snippet,
)
from merchants.docs.docs_search import Section, divide, find_sections
from merchants.frame.pages import show
from merchants.people.access import Member, find_member
from orders.examples import VOUCHER_ORDER
from wallets.evidence.roots import public_key

RESPONSE_SECONDS = 35  # the service ends a request after 30, and a proxy needs a moment
MAX_QUERY = 100  # characters
EXAMPLE = {"product_id": 9001, "quantity": 1}  # of the demo shop


def public_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page for everybody. It changes nothing, and refuses a POST before its body arrives."""
    return csrf_exempt(require_safe(view))


class Page(NamedTuple):
    """A page of prose: the name of its template, its name in the menu, its title, and what its
    template needs."""

    template: str
    name: str
    title: str
    context: Callable[[Member | None], dict[str, Any]] = lambda _: {}


def _start(member: Member | None) -> dict[str, Any]:
    """The address, the key and the first calls. A member sees an example from the catalogue."""
    example = example_purchase() if member else EXAMPLE
    bought = VOUCHER_ORDER | {
        "product_id": example["product_id"],
        "variation_id": example.get("variation_id"),
    }
    return {
        "api_key": _api_key(member),
        "first": snippet("first_calls.sh"),
        "example": json.dumps(example),
        "bought": json.dumps(success(bought), indent=2),
    }


def _api_key(member: Member | None) -> str:
    """An API key without its secret. A member of any role sees the prefixes of the account."""
    if member is None:
        return "vk_…"
    keys = ApiKey.objects.live().filter(client__account=member.account, client__enabled=True)
    newest = keys.order_by("-pk").values_list("prefix", flat=True).first()
    return f"vk_{newest}_…" if newest else "vk_…"


def _programs(names: dict[str, str]) -> list[dict[str, str]]:
    """The same program in several languages, with a heading for each."""
    return [
        {"file": name, "language": language, "text": snippet(name)}
        for name, language in names.items()
    ]


def _retries(member: Member | None) -> dict[str, Any]:
    """Shows what to do after each response of the API, with programs that do it."""
    return {
        "api_key": _api_key(member),
        "codes": [
            {
                "code": code.value,
                "status": code.status.value,
                "means": text_html(gettext(code.default_message)),
                "charged": gettext(advice.charged),
                "act": gettext(advice.act),
            }
            for code, advice in CODES.items()
        ],
        "reasons": [
            {
                "reason": reason.value,
                "means": gettext(reason.message),
                "act": gettext(advice.act),
            }
            for reason, advice in REASONS.items()
        ],
        "programs": _programs(RETRY_SNIPPETS),
    }


def _abandoned_page_context(member: Member | None) -> dict[str, Any]:
    """How purchases with an unknown outcome are settled, and programs that reconcile."""
    return {
        "example": json.dumps(EXAMPLE),
        "programs": _programs(RECONCILE_SNIPPETS),
        "site": settings.PUBLIC_URL,
    }


def _statements(member: Member | None) -> dict[str, Any]:
    """How to verify a signed statement, and how a program downloads the books."""
    return {
        "program": snippet(VERIFY),
        "command": f"python {VERIFY} signed-statement.json --key {public_key().hex()}",
        "books": snippet(BOOKS),
        "site": settings.PUBLIC_URL,
    }


# By the name of their address.
PAGES = {
    "start": Page("docs_start", lazy("Quick start"), lazy("quick start"), _start),
    "retries": Page("docs_retries", lazy("Retry safely"), lazy("retry safely"), _retries),
    "topups": Page(
        "docs_topups",
        lazy("Top-ups"),
        lazy("top-ups"),
        lambda _: {"programs": _programs(WAIT_SNIPPETS)},
    ),
    "abandoned": Page(
        "docs_abandoned",
        lazy("Reconcile"),
        lazy("reconcile purchases, and request_abandoned"),
        _abandoned_page_context,
    ),
    "live": Page(
        "docs_live",
        lazy("Go live"),
        lazy("go live"),
        lambda _: {"response_seconds": RESPONSE_SECONDS, "max_quantity": MAX_QUANTITY},
    ),
    "statements": Page(
        "docs_statements", lazy("Verify statements"), lazy("verify statements"), _statements
    ),
    "api": Page(
        "api_reference",
        lazy("API reference"),
        lazy("API reference"),
        lambda _: reference(get_language()),
    ),
}
# The pages of the merchant site that the texts name, and the other addresses of the docs.
LINKED = {
    "clients": "merchants:clients",
    "references": "merchants:references",
    "orders": "merchants:orders",
    "wallet": "merchants:wallet",
    "ledger_key": "docs:ledger_key",
    "verify_statement": "docs:verify_statement",
    **{name: f"docs:{name}" for name in PAGES},
}


@public_page
def show_page(request: HttpRequest, name: str) -> HttpResponse:
    """Shows a page of PAGES."""
    contents = [one for one in _sections(name, get_language()) if one.tag == "h2"]
    return _show(request, PAGES[name], contents=contents)


def not_found(request: HttpRequest) -> HttpResponse:
    """The page with status 404, for an address below /docs/ that does not exist."""
    page = Page("docs_not_found", gettext("Page not found"), gettext("page not found"))
    return _show(request, page, status=HTTPStatus.NOT_FOUND)


@public_page
def search(request: HttpRequest) -> HttpResponse:
    """Finds the sections of all pages that have all words."""
    query = request.GET.get("q", "")[:MAX_QUERY]
    sections = chain.from_iterable(_sections(name, get_language()) for name in PAGES)
    found = find_sections(sections, query)
    page = Page("docs_search", gettext("Search"), gettext("search"))
    return _show(request, page, query=query, found=found)


@cache
def _sections(name: str, language: str) -> list[Section]:
    """The sections of a page as a stranger reads them in this language, which is active."""
    page = PAGES[name]
    context = {"frame": "merchants/docs_text.html", **_everywhere(page), **page.context(None)}
    html = render_to_string(f"merchants/{page.template}.html", context)
    return divide(capfirst(page.title), reverse(f"docs:{name}"), html)


@public_page
def ledger_key(request: HttpRequest) -> HttpResponse:
    """The public key of signed roots, in hexadecimal. For everybody."""
    return _text(public_key().hex() + "\n")


@public_page
def verify_statement(request: HttpRequest) -> HttpResponse:
    """The program that verifies a statement. For everybody."""
    return _text(snippet(VERIFY))


@public_page
def snippet_file(request: HttpRequest, name: str) -> HttpResponse:
    """One program of the docs pages as a file; 404 for an unknown name."""
    if name not in SNIPPET_NAMES:
        raise Http404
    return _text(snippet(name), **{"Content-Disposition": f'attachment; filename="{name}"'})


def _text(text: str, **headers: str) -> HttpResponse:
    """A file, which is the same for readers of each language."""
    headers["Content-Language"] = "en"
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)


def find_reader(request: HttpRequest) -> Member | None:
    """The member who reads, if the session has shown the second factor that the member has."""
    return None if must_show_factor(request) else find_member(request)


def _everywhere(page: Page) -> dict[str, Any]:
    minutes = settings.IDEMPOTENCY_IN_PROGRESS_SECONDS // 60
    days = settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS
    return {
        "title": gettext("Docs: %(title)s") % {"title": page.title},
        "here": page.template,
        "pages": PAGES,
        "base_url": f"{settings.PUBLIC_URL}{API_BASE}",
        "window": _minutes(minutes),
        "patience": _minutes(minutes + 1),
        "keep": ngettext("%(number)d day", "%(number)d days", days) % {"number": days},
        **{f"{name}_page": reverse(address) for name, address in LINKED.items()},
    }


def _minutes(number: int) -> str:
    return ngettext("%(number)d minute", "%(number)d minutes", number) % {"number": number}


def _show(
    request: HttpRequest, page: Page, *, status: int = HTTPStatus.OK, **more: Any
) -> HttpResponse:
    member = find_reader(request)
    context = {**_everywhere(page), **page.context(member), **more}
    name = f"merchants/{page.template}.html"
    if member is None:
        context["frame"] = "merchants/bare.html"
        return TemplateResponse(request, name, context, status=status)
    return show(request, member, name, status=status, frame="merchants/base.html", **context)
