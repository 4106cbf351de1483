"""The search field of every page: its results, during typing and as a page of their own.

The text comes in the body of a POST, because it may be a voucher code or a key: no address, log or
cache holds a complete one (docs/decisions/0056-search.md).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from unfold.dataclasses import UnfoldAction

from accounts.models import RequestRecord
from core.backoffice.search import SHORTEST_NAME, Hit, find_for_staff, kinds_out_of_reach
from core.texts import lazy
from operators.admin.action_forms import ACTION_FORMS
from operators.admin.menu import navigation
from operators.frame.base import name_on_page, site_page, staff_of, url_of
from operators.frame.reader import may_view, registered_models
from operators.frame.recent import recent_rows
from orders.models import Order
from topups.fulfilment.transitions import FULFIL

FIELD = "text"
FEW = 3  # rows found, whose actions are offered
# Actions that need no row, each with the right that it needs. Those of ACTION_FORMS ask for one.
ACTIONS: list[tuple[str, str, str, str]] = [
    (lazy("Invite staff"), "auth.add_user", "admin:auth_user_add", ""),
    (lazy("Claim top-ups"), FULFIL, "admin:topups_fulfilment_changelist", lazy("Desk")),
]


class Result(NamedTuple):
    """A line of the results."""

    kind: str
    name: str
    about: str
    url: str


@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """Shows what is found, and what the reader may do. A form that finds one thing leads to it.

    The palette (unfold/helpers/command.html) asks with HTMX and gets only the list. Without a text
    it gets what was opened last.
    """
    text = request.POST.get(FIELD, "")
    sees = partial(may_view, request)
    hits = _without_requests_of_orders(find_for_staff(text, sees=sees))
    words = text.lower().split()
    found = [Result(hit.kind, hit.name, hit.about, url_of(hit.row)) for hit in hits]
    if len(text.strip()) >= SHORTEST_NAME:
        found += _pages(request, words)
    results = found or ([] if words else _recent(request))
    if len(text.strip()) != 1:
        results = [*results, *_actions(request, words), *_actions_of_rows(request, hits)]
    context = {
        "hits": hits,
        "results": results,
        "is_search": bool(words),
        "is_secret": any(hit.is_secret for hit in hits),
        "out_of_reach": kinds_out_of_reach(sees=sees),
    }
    if request.headers.get("HX-Request"):
        answer = TemplateResponse(request, "admin/search_results.html", context)
        answer["Cache-Control"] = "no-store"
        return answer
    if len(found) == 1:
        return HttpResponseRedirect(found[0].url)
    return site_page(request, "admin/search.html", title=_("Search"), **context)


def _without_requests_of_orders(hits: list[Hit]) -> list[Hit]:
    """Leaves out the requests of orders that were found. The page of an order shows them."""
    orders = {hit.row.reference for hit in hits if isinstance(hit.row, Order)}
    return [
        hit
        for hit in hits
        if not (isinstance(hit.row, RequestRecord) and hit.row.order_reference in orders)
    ]


def _recent(request: HttpRequest) -> list[Result]:
    """The objects that the reader opened last, as far as they may still view them."""
    return [
        Result(_("Recent"), name_on_page(row), str(row._meta.verbose_name), url_of(row))
        for row in recent_rows(staff_of(request))
        if may_view(request, type(row))
    ]


def _pages(request: HttpRequest, words: list[str]) -> list[Result]:
    """The pages of the menu whose title contains the words."""
    return [
        Result(_("Page"), item["title"], section["title"], item["link"])
        for section in navigation(request)
        for item in section["items"]
        if _has(item["title"], words)
    ]


def _actions(request: HttpRequest, words: list[str]) -> list[Result]:
    """Actions that the reader may begin: from a list, by a form for a new row, or by a button."""
    user = staff_of(request)
    named = [
        (one.title, "", reverse("begin", args=[name]))
        for name, one in ACTION_FORMS.items()
        if user.has_perm(one.right)
    ]
    named += [
        (name, about, reverse(page)) for name, right, page, about in ACTIONS if user.has_perm(right)
    ]
    for model in registered_models() if words else ():
        page: Any = admin.site.get_model_admin(model)
        meta = model._meta
        if page.has_add_permission(request) and model is not User:
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_add")
            named.append((_("New %(kind)s") % {"kind": meta.verbose_name}, "", address))
        if page.has_view_permission(request):
            named += [
                (button.description, str(capfirst(meta.verbose_name_plural)), _address(button))
                for button in page.get_actions_list(request)
            ]
    return [
        Result(_("Action"), str(name), str(about), address)
        for name, about, address in named
        if _has(name, words)
    ]


def _actions_of_rows(request: HttpRequest, hits: list[Hit]) -> list[Result]:
    """The buttons of the rows that were found, if they are few."""
    pages: list[tuple[Hit, Any]] = [
        (hit, admin.site.get_model_admin(type(hit.row))) for hit in hits
    ]
    return [
        Result(_("Action"), str(button.description), hit.name, _address(button, hit.row.pk))
        for hit, page in (pages if len(pages) <= FEW else ())
        for button in page.get_actions_detail(request, str(hit.row.pk))
    ]


def _address(button: UnfoldAction, *arguments: Any) -> str:
    return reverse(f"admin:{button.action_name}", args=arguments)


def _has(title: str, words: list[str]) -> bool:
    return all(word in str(title).lower() for word in words)
