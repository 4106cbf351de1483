"""The search field of every page: its results, during typing and as a page of their own.

The text comes in the body of a POST, because it may be a voucher code or a key: no address, log or
cache holds a complete one (docs/decisions/0056-search.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from unicodedata import combining, normalize

from django.conf import settings
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
from catalogue.models import VoucherCode
from core.backoffice.search import (
    LONGEST,
    SHORTEST_NAME,
    Hit,
    find_for_staff,
    kinds_out_of_reach,
)
from core.texts import lazy
from operators.admin.action_forms import ACTION_FORMS
from operators.admin.menu import navigation
from operators.catalogue.batches import STATE_NAMES
from operators.catalogue.codes import state_of
from operators.frame.base import name_on_page, site_page, staff_of, url_of
from operators.frame.reader import may_view, registered_models
from operators.frame.recent import recent_rows
from orders.models import Order
from topups.fulfilment.transitions import FULFIL

FIELD = "text"
FEW = 3  # rows found, whose actions are offered
# Actions that need no row, each with the right that it needs. Those of ACTION_FORMS ask for one.
ACTIONS: list[tuple[str, str, str, str, str]] = [
    (
        lazy("Invite staff"),
        "auth.add_user",
        "admin:auth_user_add",
        "",
        lazy("add new user colleague employee administrator"),
    ),
    (
        lazy("Claim top-ups"),
        FULFIL,
        "admin:topups_fulfilment_changelist",
        lazy("Desk"),
        lazy("deliver next work recharge queue"),
    ),
]
# Other words for a page of the menu and the buttons of its list, by its model or its URL's name.
WORDS = {
    "accounts.account": lazy("merchant customer client shop balance company spending limit"),
    "accounts.apiclient": lazy("merchant key token secret integration shop IP address"),
    "accounts.owncompany": lazy("address logo letterhead issuer tax number"),
    "accounts.requestrecord": lazy("API log call error"),
    "audit.auditentry": lazy("log history who changed activity"),
    "auth.group": lazy("permission right access role group"),
    "auth.user": lazy("user colleague employee administrator password reset 2FA access role"),
    "cases.case": lazy("ticket complaint support dispute refund replacement wrong code"),
    "catalogue.batch": lazy("supplier invoice delivery expiry cost stock"),
    "catalogue.category": lazy("group of products"),
    "catalogue.codehold": lazy("blocked locked recalled stock"),
    "catalogue.pricelist": lazy("discount special merchant price percent conditions"),
    "catalogue.pricelistentry": lazy("discount merchant price"),
    "catalogue.product": lazy("article item gift card voucher catalogue price"),
    "catalogue.referencelink": lazy("SKU mapping external ID"),
    "catalogue.shelf": lazy("inventory stock price cost available quantity"),
    "catalogue.vouchercode": lazy("PIN serial number gift card key stock"),
    "figures.exchangerate": lazy("currency conversion"),
    "figures.stockthreshold": lazy("low stock warning minimum"),
    "imports.fileimport": lazy("upload file CSV Excel spreadsheet add stock restock prices"),
    "margins": lazy("revenue profit turnover earnings report statistics"),
    "merchants.email": lazy("sent mail message"),
    "merchants.emailedreport": lazy("subscription schedule"),
    "merchants.invitation": lazy("merchant user member"),
    "merchants.membership": lazy("merchant user member contact login password owner"),
    "month_end": lazy("accounting closing statement bookkeeping"),
    "orders.lostpurchase": lazy("restore backup"),
    "orders.order": lazy("purchase sale refund credit receipt"),
    "system": lazy("status health monitoring backup version"),
    "telegram.telegramlink": lazy("operators"),
    "topups.fulfilment": lazy("top up queue deliver recharge topup"),
    "topups.topupproduct": lazy("game diamonds player recharge topup price"),
    "wallets.announcedtransfer": lazy("bank deposit top up payment incoming money"),
    "wallets.bankdetails": lazy("IBAN account number deposit"),
    "wallets.bookingapproval": lazy("second person four eyes confirm pending refund"),
    "wallets.bookinglimit": lazy("maximum amount deposit credit"),
    "wallets.ledgerentry": lazy("booking deposit payment transaction refund statement"),
    "wallets.wallet": lazy("balance money deposit"),
    "warnings.staffwarning": lazy("alert notification low stock"),
    "warnings.warningrule": lazy("alert limit notification threshold"),
}
# How well a name fits, the best first. ROW is for rows that were found.
BEGINS, WORD_BEGINS, OTHER_WORD, ROW, CONTAINS = range(5)


class Result(NamedTuple):
    """A line of the results, and how well it fits."""

    kind: str
    name: str
    about: str
    url: str
    fit: float = ROW


@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """Shows what is found, and what the reader may do. A form that finds one thing leads to it.

    The palette (unfold/helpers/command.html) asks with HTMX and gets only the list. Without a text
    it gets what was opened last.
    """
    text = request.POST.get(FIELD, "")
    sees = partial(may_view, request)
    hits, slow = find_for_staff(text, sees=sees)
    orders = _orders_of_codes(hits) if sees(Order) else {}
    hits = _describe_codes(_without_requests_of_orders(hits), orders)
    words = _words(text[:LONGEST])
    found = [
        Result(hit.kind, hit.name, hit.about, url_of(hit.row), _fit_of_row(hit, text))
        for hit in hits
    ]
    if words and len(text.strip()) >= SHORTEST_NAME:
        found += _pages(request, words)
    results = found or ([] if words else _recent(request))
    results = [*results, *_links_to_orders(hits, orders)]
    if len(text.strip()) != 1:
        actions = _actions(request, words)
        results = [*actions, *results] if words else [*results, *actions]
        results += [*_actions_of_rows(request, hits), *_buttons(request, words)]
    if words:
        results.sort(key=lambda one: one.fit)
    rows = [one for one in results[:2] if one in found[: len(hits)]]
    is_secret = any(hit.is_secret for hit in hits)
    context = {
        "hits": hits,
        "results": results,
        "is_search": bool(words),
        "is_unclear": len(rows) > 1 and rows[0].fit == rows[1].fit,
        "is_secret": is_secret,
        "out_of_reach": kinds_out_of_reach(sees=sees),
        "slow": slow,
        # Kept in the field only if it is no secret. A code that was mistyped may be one.
        "typed": text if hits and not is_secret else "",
    }
    if request.headers.get("HX-Request"):
        answer = TemplateResponse(request, "admin/search_results.html", context)
        answer["Cache-Control"] = "no-store"
        return answer
    if len(found) == 1 and not slow:
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


def _orders_of_codes(hits: list[Hit]) -> dict[int, Order]:
    """The orders that the codes were sold with, by their ids."""
    sold = [code.order_id for code in map(_code_of, hits) if code and code.order_id]
    rows = Order.objects.filter(pk__in=sold).select_related("client__account")
    return {one.pk: one for one in rows}


def _links_to_orders(hits: list[Hit], orders: dict[int, Order]) -> list[Result]:
    """A line after the codes for each order that was not found by itself."""
    of_hits = {hit.row.pk for hit in hits if isinstance(hit.row, Order)}
    return [
        Result(
            kind=str(capfirst(order._meta.verbose_name)),
            name=order.reference,
            about=str(order.client.account or order.client),
            url=url_of(order),
            fit=BEGINS + 0.5,
        )
        for order in orders.values()
        if order.pk not in of_hits
    ]


def _describe_codes(hits: list[Hit], orders: dict[int, Order]) -> list[Hit]:
    """Adds state and order to codes: several can have one serial number."""
    described = []
    for hit in hits:
        about = [hit.about]
        if code := _code_of(hit):
            about.append(str(STATE_NAMES[state_of(code)]))
            if order := orders.get(code.order_id or 0):
                about += [order.reference, str(order.client.account or order.client)]
        described.append(replace(hit, about=", ".join(about)))
    return described


def _code_of(hit: Hit) -> VoucherCode | None:
    return hit.row if isinstance(hit.row, VoucherCode) else None


def _recent(request: HttpRequest) -> list[Result]:
    """The objects that the reader opened last, as far as they may still view them."""
    return [
        Result(_("Recent"), name_on_page(row), str(row._meta.verbose_name), url_of(row))
        for row in recent_rows(staff_of(request))
        if may_view(request, type(row))
    ]


def _pages(request: HttpRequest, words: list[str]) -> list[Result]:
    """The pages of the menu and of the reader's own account that fit the words."""
    theme: dict[str, Any] = settings.UNFOLD
    own = [(each, "") for each in theme["ACCOUNT"]["navigation"]]
    if staff_of(request).has_usable_password():
        own.append(({"title": _("Change password"), "link": reverse("admin:password_change")}, ""))
    pages = [(item, part["title"]) for part in navigation(request) for item in part["items"]]
    return [
        Result(_("Page"), str(item["title"]), about, item["link"], fit)
        for item, about in [*own, *pages]
        for fit in _fits(item["title"], item.get("words") or WORDS.get(item.get("key", "")), words)
    ]


def _actions(request: HttpRequest, words: list[str]) -> list[Result]:
    """The actions of ACTION_FORMS and ACTIONS that fit the words and that the reader may begin."""
    user = staff_of(request)
    named = [
        (one.title, "", reverse("begin", args=[name]), one.words)
        for name, one in ACTION_FORMS.items()
        if user.has_perm(one.right)
    ]
    named += [
        (name, about, reverse(page), more)
        for name, right, page, about, more in ACTIONS
        if user.has_perm(right)
    ]
    return [
        Result(_("Action"), str(name), str(about), address, fit)
        for name, about, address, more in named
        for fit in _fits(name, more, words)
    ]


def _buttons(request: HttpRequest, words: list[str]) -> list[Result]:
    """The forms for new rows and the buttons of lists that fit the words."""
    named: list[tuple[str, str, str, str | None]] = []
    for model in registered_models() if words else ():
        page: Any = admin.site.get_model_admin(model)
        meta, more = model._meta, WORDS.get(model._meta.label_lower)
        if page.has_add_permission(request) and model is not User:
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_add")
            named.append((_("New %(kind)s") % {"kind": meta.verbose_name}, "", address, more))
        if page.has_view_permission(request):
            named += [
                (
                    str(button.description),
                    str(capfirst(meta.verbose_name_plural)),
                    _address(button),
                    more,
                )
                for button in page.get_actions_list(request)
            ]
    return [
        Result(_("Action"), name, about, address, fit)
        for name, about, address, more in named
        for fit in _fits(name, more, words)
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


def _words(text: str) -> list[str]:
    """The words without capitals, hyphens and accents."""
    plain = normalize("NFKD", text.casefold().replace("-", " "))
    return "".join(one for one in plain if not combining(one)).split()


def _fit_of_row(hit: Hit, text: str) -> int:
    """A row with exactly this name or this secret fits best. Emails can name it in English."""
    names = (hit.name.casefold(), str(hit.row).casefold())
    return BEGINS if hit.is_secret or text.strip().casefold() in names else ROW


def _fits(title: str, more: str | None, words: list[str]) -> list[float]:
    """How well a title and its other words fit the words, as one number; empty if they do not."""
    own, others = _words(str(title)), _words(str(more or ""))
    if " ".join(own).startswith(" ".join(words)):
        return [BEGINS]
    if all(any(one.startswith(word) for one in own) for word in words):
        return [WORD_BEGINS]
    # "refunds" also finds "refund". The first of the other words fit best.
    places = [
        next((place for place, one in enumerate(others) if _is_meant(word, one)), None)
        for word in words
        if not any(_is_meant(word, one) for one in own)
    ]
    if None not in places:
        return [OTHER_WORD + max(filter(None, places), default=0) / 100]
    return [CONTAINS] if all(word in " ".join(own) for word in words) else []


def _is_meant(word: str, one: str) -> bool:
    return one.startswith(word) or (len(one) > 3 and word.startswith(one))
