"""The desk's other pages: the dashboard, and the numbers that update themselves."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from core.inputs import is_id
from core.texts import lazy
from operators.desk.report import show_report
from operators.desk.viewers import note_viewer, other_viewers
from operators.frame.base import list_url, site_page, staff_of
from operators.frame.desk_summary import summarise_desk, summarise_queue
from operators.frame.long_lists import LongRecordAdmin
from topups.fulfilment.transitions import FULFIL, OPEN
from topups.models import Fulfilment

# A chart of stacked bars, with whole numbers on the y axis and a legend.
_FONT = {"family": "system-ui, sans-serif"}
_TICKS = {"color": "#9ca3af", "precision": 0, "font": _FONT}
CHART_OPTIONS = {
    "maintainAspectRatio": False,
    "animation": False,
    "plugins": {
        "legend": {
            "align": "end",
            "labels": {"boxHeight": 8, "boxWidth": 8, "color": "#9ca3af", "font": _FONT},
        }
    },
    "scales": {
        "x": {"stacked": True, "ticks": _TICKS, "grid": {"display": False}},
        "y": {"stacked": True, "ticks": _TICKS, "grid": {}, "suggestedMax": 4},
    },
}


NOTHING_FOUND = {  # by the only filter of the queue
    "mine": lazy("You have claimed no order."),
    "refund_due": lazy("No refund is due."),
}


class DeskPages(LongRecordAdmin):
    """The numbers above the queue, and the dashboard."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        newest = Fulfilment.objects.aggregate(newest=Max("pk"))["newest"] or 0
        context = {**(extra_context or {}), **_strip(request, newest)}
        answer: HttpResponse = super().changelist_view(request, context)
        return answer

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        if len(found.get_filters_params()) == 1 and not found.query:
            found.nothing_found = NOTHING_FOUND.get(request.GET.get("work", ""))
        return found

    def strip(self, request: HttpRequest) -> HttpResponse:
        """The numbers above the queue, which the page fetches at intervals (live.js).

        `after` is the id of the newest order when the page was loaded. Orders with a higher id are
        counted as new.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        return TemplateResponse(
            request, "admin/desk_strip.html", _strip(request, _newest_seen(request))
        )

    def viewers(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Names who else looks at an order. Its page fetches this at intervals (live.js)."""
        order = get_object_or_404(Fulfilment, pk=pk)
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {"viewers": self.viewers_of(request, order)}
        return TemplateResponse(request, "admin/desk_viewers.html", context)

    def viewers_of(self, request: HttpRequest, order: Fulfilment) -> dict[str, Any]:
        """The other people at an order, for admin/desk_viewers.html. Empty if the order has ended.

        People who cannot work on orders are not named.
        """
        if order.status not in OPEN:
            return {}
        user = staff_of(request)
        look_up = note_viewer if user.has_perm(FULFIL) else other_viewers
        return {
            "names": look_up(order.pk, user),
            "url": reverse("admin:topups_fulfilment_viewers", args=[order.pk]),
            "refresh": settings.DESK_REFRESH_SECONDS,
        }

    def glance(self, request: HttpRequest) -> HttpResponse:
        """The numbers of the dashboard, which the page fetches at intervals (live.js)."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        desk = show_desk(staff_of(request))
        return TemplateResponse(request, "admin/desk_numbers.html", {"desk": desk})

    def dashboard(self, request: HttpRequest) -> HttpResponse:
        """The dashboard: the state of the desk on a page of its own."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            "admin/desk_dashboard.html",
            {
                **self.admin_site.each_context(request),
                "title": _("Top-up dashboard"),
                "desk": show_desk(staff_of(request)),
            },
        )

    def report(self, request: HttpRequest) -> HttpResponse:
        """The report of a shift."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return site_page(
            request, "admin/desk_report.html", title=_("Shift report"), **show_report(request)
        )


def show_desk(user: User) -> dict[str, Any]:
    """The desk's numbers, its chart in the theme's format, and the address of the queue."""
    numbers = summarise_desk(user)
    hours = numbers["hours"]
    series = ((_("Delivered"), "completed", "#16a34a"), (_("Failed"), "failed", "#dc2626"))
    datasets = [
        {"label": label, "data": hours[name], "backgroundColor": colour, "borderRadius": 2}
        for label, name, colour in series
    ]
    return {
        **numbers,
        "url": list_url(Fulfilment),
        "chart": json.dumps({"labels": hours["labels"], "datasets": datasets}),
        "chart_options": json.dumps(CHART_OPTIONS),
    }


def queue_url() -> str:
    """The address of the queue."""
    return reverse("admin:topups_fulfilment_changelist")


def _newest_seen(request: HttpRequest) -> int | None:
    after = request.GET.get("after", "")
    return int(after) if is_id(after) else None


def _strip(request: HttpRequest, after: int | None) -> dict[str, Any]:
    return {"queue": summarise_queue(staff_of(request), after=after), "after": after}
