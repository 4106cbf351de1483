"""The search field of every page: its results, while somebody types, and as a page of their own.

The text comes in the body of a POST, because it may be a voucher code or a key: no address, log or
cache holds a complete one (docs/decisions/0056-search.md).
"""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_http_methods

from config.finders import SHORTEST_NAME
from operators.admin.base import site_page, url_of
from operators.admin.menu import navigation
from operators.admin.trail_lines import may_view
from operators.search import Hit, find

FIELD = "text"


class Result(NamedTuple):
    """A line of the results."""

    kind: str
    name: str
    about: str
    url: str


@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """Shows what was found. A form that finds exactly one thing leads to its page.

    The palette (unfold/helpers/command.html) asks with HTMX and gets only the list.
    """
    text = request.POST.get(FIELD, "")
    hits = find(text, sees=lambda model: may_view(request, model))
    found = [*_pages(request, text), *(Result(*_words(hit), url_of(hit.row)) for hit in hits)]
    results = {"hits": hits, "found": found, "asked": bool(text.strip())}
    if request.headers.get("HX-Request"):
        answer = TemplateResponse(request, "admin/search_results.html", results)
        answer["Cache-Control"] = "no-store"
        return answer
    if len(found) == 1:
        return HttpResponseRedirect(found[0].url)
    return site_page(request, "admin/search.html", title="Search", **results)


def _pages(request: HttpRequest, text: str) -> list[Result]:
    """The pages of the menu whose title contains the text."""
    wanted = text.strip().lower()
    return [
        Result("Page", item["title"], section["title"], item["link"])
        for section in navigation(request)
        for item in section["items"]
        if len(wanted) >= SHORTEST_NAME and wanted in item["title"].lower()
    ]


def _words(hit: Hit) -> tuple[str, str, str]:
    return hit.kind, hit.name, hit.about
