"""The operators' desk: the queue of top-up orders, and the page of each order."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.urls import path
from unfold.contrib.filters.admin import AutocompleteSelectFilter, RelatedDropdownFilter

from core.texts import lazy
from operators.desk.columns import DeskColumns, WorkFilter
from operators.desk.moves import DeskMoves
from operators.desk.pages import DeskPages
from operators.frame.base import DETAILS, linked
from operators.frame.long_lists import LOOKED_AT, PeriodFilter
from operators.history.timeline import Timeline, TimelinePage, order_timeline, timeline_of
from orders.models import Order
from topups.fulfilment.transitions import FULFIL, OPEN
from topups.models import Fulfilment
from topups.search import with_player


@admin.register(Fulfilment)
class FulfilmentAdmin(TimelinePage, DeskColumns, DeskMoves, DeskPages):
    """Top-up orders, the oldest first."""

    ordering = ("created_at", "id")  # type: ignore[assignment]
    served = ("work",)
    list_display = (
        *("order_reference", "age", "state", "goods", "player", "texts", "claim"),
        "account",
    )
    list_filter = (
        WorkFilter,
        ("product", RelatedDropdownFilter),
        ("account", AutocompleteSelectFilter),
        ("created_at", PeriodFilter),
    )
    list_filter_submit = True
    list_select_related = ("product", "account", "claimed_by")
    search_fields = ("order_reference", "player_id")
    search_help_text = lazy("Order reference or player ID")
    when_empty = lazy("Nothing is waiting.")
    merchant = linked("account")
    list_before_template = "admin/desk_next.html"
    change_form_outer_before_template = "admin/desk_moves.html"
    fieldsets = (
        (
            None,
            {"fields": ("goods", "player_to_copy", "texts", "wait", "holder")},
        ),
        (
            lazy("Merchant"),
            {"fields": ("reference_to_copy", "merchant", "price", "refund", "merchant_text")},
        ),
        ("Telegram", {"fields": ("telegram",)}),
        (DETAILS, {"fields": ("failure_reason",), "classes": ["collapse"]}),
    )

    def name_of(self, row: Fulfilment) -> str:
        """The product and the player id."""
        return f"{row.product} → {row.player_id}"

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Open orders have an index of their time. All orders are shown newest first."""
        return ("-id",) if request.GET.get("work") == "all" else ("created_at", "id")

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        is_all = request.GET.get("work") == "all"
        return is_all and super().reads_too_much(request, filters, term)

    # The permission to work on orders is enough to see the desk.
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(FULFIL) or super().has_view_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def search(self, queryset: Any, term: str, request: HttpRequest) -> tuple[Any, bool]:
        """Finds open orders by a part of the reference or player ID, ended ones by the whole.

        Three queries in one: PostgreSQL would read every order for an OR of their conditions. The
        list reads what they find by its ids: joined with them, it might read every order, too.
        """
        if not term:
            return queryset, False
        rows = Fulfilment.objects.order_by().values("pk")
        part = Q(order_reference__icontains=term) | Q(player_id__icontains=term)
        matches = rows.filter(part, status__in=OPEN).union(
            rows.filter(order_reference=term.upper()), with_player(rows, term), all=True
        )
        found = [row["pk"] for row in matches[:LOOKED_AT]]
        return queryset.filter(pk__in=found), False

    def timeline(self, request: HttpRequest, obj: Fulfilment) -> Timeline:
        rows = Order.objects.select_related("client__account", "fulfilment__product")
        order = rows.filter(fulfilment=obj).first()
        return order_timeline(request, order, on=obj) if order else timeline_of(request, obj)

    def get_urls(self) -> list[Any]:
        admin_view = self.admin_site.admin_view
        return [
            path("next/", admin_view(self.claim_next), name="topups_fulfilment_next"),
            path("strip/", admin_view(self.strip), name="topups_fulfilment_strip"),
            path("glance/", admin_view(self.glance), name="topups_fulfilment_glance"),
            path("report/", admin_view(self.report), name="topups_fulfilment_report"),
            path("dashboard/", admin_view(self.dashboard), name="topups_fulfilment_dashboard"),
            path(
                "<int:pk>/deliver-next/",
                admin_view(self.deliver_next),
                name="topups_fulfilment_deliver_next",
            ),
            path("<int:pk>/viewers/", admin_view(self.viewers), name="topups_fulfilment_viewers"),
            path("<int:pk>/proof/", admin_view(self.add_proof), name="topups_fulfilment_add_proof"),
            path(
                "<int:pk>/proof/<int:proof>/",
                admin_view(self.send_proof),
                name="topups_fulfilment_proof_file",
            ),
            path("<int:pk>/move/<str:move>/", admin_view(self.move), name="topups_fulfilment_move"),
            *super().get_urls(),
        ]
