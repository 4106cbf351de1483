"""The search field of every page: its results, during typing and as a page of their own.

The text comes in the body of a POST, because it may be a voucher code or a key: no address, log or
cache holds a complete one (docs/decisions/0056-search.md).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.models import RequestRecord
from core.backoffice.search import SHORTEST_NAME, Hit, find_for_staff, kinds_out_of_reach
from operators.admin.menu import navigation
from operators.frame.base import site_page, url_of
from operators.frame.reader import may_view
from orders.models import Order

FIELD = "text"


class Result(NamedTuple):
    """A line of the results."""

    kind: str
    name: str
    about: str
    url: str


@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """Shows the results. A form with exactly one result leads to its page.

    The palette (unfold/helpers/command.html) asks with HTMX and gets only the list.
    """
    text = request.POST.get(FIELD, "")
    sees = partial(may_view, request)
    hits = _without_requests_of_orders(find_for_staff(text, sees=sees))
    results = [
        *_pages(request, text),
        *(Result(hit.kind, hit.name, hit.about, url_of(hit.row)) for hit in hits),
    ]
    context = {
        "hits": hits,
        "results": results,
        "is_search": bool(text.strip()),
        "out_of_reach": kinds_out_of_reach(sees=sees),
    }
    if request.headers.get("HX-Request"):
        answer = TemplateResponse(request, "admin/search_results.html", context)
        answer["Cache-Control"] = "no-store"
        return answer
    if len(results) == 1:
        return HttpResponseRedirect(results[0].url)
    return site_page(request, "admin/search.html", title=_("Search"), **context)


def _without_requests_of_orders(hits: list[Hit]) -> list[Hit]:
    """Leaves out the requests of orders that were found. The page of an order shows them."""
    orders = {hit.row.reference for hit in hits if isinstance(hit.row, Order)}
    return [
        hit
        for hit in hits
        if not (isinstance(hit.row, RequestRecord) and hit.row.order_reference in orders)
    ]


def _pages(request: HttpRequest, text: str) -> list[Result]:
    """The pages of the menu whose title contains the text."""
    part = text.strip().lower()
    return [
        Result(_("Page"), item["title"], section["title"], item["link"])
        for section in navigation(request)
        for item in section["items"]
        if len(part) >= SHORTEST_NAME and part in item["title"].lower()
    ]
