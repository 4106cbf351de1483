"""The menu and the first page, by what people come to do."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse

from catalogue.models import Shelf
from operators.admin.base import staff_of
from operators.admin.catalogue import LOW_STOCK
from operators.desk_summary import summarise_desk
from topups.transitions import FULFIL

# Section: (title, model, icon).
SECTIONS: dict[str, list[tuple[str, str, str]]] = {
    "Top-ups": [
        ("Desk", "topups.fulfilment", "sports_esports"),
        ("Packages", "topups.topupproduct", "diamond"),
    ],
    "Catalogue": [
        ("Products", "catalogue.product", "redeem"),
        ("Stock levels", "catalogue.shelf", "inventory_2"),
        ("Categories", "catalogue.category", "category"),
        ("Voucher codes", "catalogue.vouchercode", "password"),
        ("Reference links", "catalogue.referencelink", "link"),
    ],
    "Merchants": [
        ("Accounts", "accounts.account", "storefront"),
        ("API clients", "accounts.apiclient", "key"),
        ("People", "merchants.membership", "groups_2"),
        ("Invitations", "merchants.invitation", "person_add"),
    ],
    "Money": [
        ("Wallets", "wallets.wallet", "account_balance_wallet"),
        ("Ledger", "wallets.ledgerentry", "receipt_long"),
    ],
    "Orders": [
        ("Orders", "orders.order", "shopping_cart"),
    ],
    "Telegram": [
        ("Announcements", "operators.announcement", "campaign"),
        ("Routes", "operators.announcementroute", "alt_route"),
        ("Linked staff", "operators.telegramlink", "contacts"),
        ("Platform settings", "operators.platformsettings", "tune"),
    ],
    "System": [
        ("Idempotency records", "idempotency.idempotencyrecord", "repeat_one"),
        ("Audit trail", "audit.auditentry", "policy"),
        ("Letters", "merchants.email", "outgoing_mail"),
        ("Staff", "auth.user", "badge"),
        ("Groups", "auth.group", "groups"),
    ],
}


# Whole numbers upwards, both series on top of each other, and what each colour means.
_TICKS = {"color": "#9ca3af", "precision": 0}
CHART_OPTIONS = {
    "maintainAspectRatio": False,
    "animation": False,
    "plugins": {
        "legend": {"align": "end", "labels": {"boxHeight": 8, "boxWidth": 8, "color": "#9ca3af"}}
    },
    "scales": {
        "x": {"stacked": True, "ticks": _TICKS, "grid": {"display": False}},
        "y": {"stacked": True, "ticks": _TICKS, "grid": {}, "suggestedMax": 4},
    },
}

admin.site.index_title = "Overview"


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sections with what this person may see; a registered model that no section names is
    still there, under System."""
    allowed = {
        model._meta.label_lower: (model, desk)
        for model, desk in admin.site._registry.items()
        if desk.has_view_or_change_permission(request)
    }
    named = {label for items in SECTIONS.values() for _, label, _ in items}
    sections: list[dict[str, Any]] = []
    for title, items in SECTIONS.items():
        shown = [item for item in items if item[1] in allowed]
        if title == "System":
            shown += [
                (str(model._meta.verbose_name_plural).capitalize(), label, "database")
                for label, (model, _) in allowed.items()
                if label not in named
            ]
        if shown:
            links: list[dict[str, Any]] = [
                {"title": name, "icon": icon, "link": _list_url(label)}
                for name, label, icon in shown
            ]
            if "topups.fulfilment" in allowed and title == "Top-ups":
                dashboard = reverse("admin:topups_fulfilment_dashboard")
                if request.path == dashboard:  # its address begins with that of the queue
                    links[0]["active"] = False
                links.insert(1, {"title": "Dashboard", "icon": "monitoring", "link": dashboard})
            sections.append({"title": title, "separator": bool(sections), "items": links})
    return sections


def first_page(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """What the first page shows besides the menu."""
    context["sections"] = [
        {"title": section["title"], "links": section["items"]} for section in navigation(request)
    ]
    if request.user.has_perm(FULFIL):
        context["desk"] = show_desk(staff_of(request))
    desk = admin.site._registry.get(Shelf)
    if desk and desk.has_view_or_change_permission(request):
        selling = Q(product__active=True) & (Q(variation=None) | Q(variation__active=True))
        context["stock"] = Shelf.objects.filter(selling, price__isnull=False).aggregate(
            none=Count("pk", filter=Q(available_stock=0)),
            low=Count("pk", filter=Q(available_stock__gt=0, available_stock__lt=LOW_STOCK)),
        )
        context["stock_url"] = _list_url("catalogue.shelf")
        context["low_stock"] = LOW_STOCK
    return context


def show_desk(user: User) -> dict[str, Any]:
    """The desk's numbers, its chart as the theme wants it, and where its lists are."""
    numbers = summarise_desk(user)
    hours = numbers["hours"]
    series = (("Delivered", "completed", "#16a34a"), ("Failed", "failed", "#dc2626"))
    datasets = [
        {"label": label, "data": hours[name], "backgroundColor": colour, "borderRadius": 2}
        for label, name, colour in series
    ]
    return {
        **numbers,
        "url": _list_url("topups.fulfilment"),
        "chart": json.dumps({"labels": hours["labels"], "datasets": datasets}),
        "chart_options": json.dumps(CHART_OPTIONS),
    }


def stylesheet(request: HttpRequest) -> str:
    """Our few lines on top of the theme's."""
    return static("operators/admin.css")


def icon(request: HttpRequest) -> str:
    """What a browser shows in a tab; without one it asks for a file that is not there."""
    return static("operators/icon.svg")


def _list_url(label: str) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_changelist")
