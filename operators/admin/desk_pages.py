"""The desk's other pages: the entrance, the dashboard, and the numbers that update themselves."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from core.inputs import is_id
from operators.admin.base import RecordAdmin, staff_of
from operators.admin.menu import show_desk, works_only_at_desk
from operators.desk_summary import summarise_queue
from topups.models import Fulfilment


class DeskPages(RecordAdmin):
    """The numbers above the queue, and the dashboard."""

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        newest = Fulfilment.objects.aggregate(newest=Max("pk"))["newest"] or 0
        context = {**(extra_context or {}), **_strip(request, newest)}
        answer: HttpResponse = super().changelist_view(request, context)
        return answer

    def strip(self, request: HttpRequest) -> HttpResponse:
        """The numbers above the queue, which the page fetches at intervals (live.js).

        `after` is the id of the newest order when the page was loaded. Orders with a higher id are
        counted as new.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        return TemplateResponse(request, "admin/desk_strip.html", _strip(request, _after(request)))

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
                "title": "Top-up dashboard",
                "desk": show_desk(staff_of(request)),
            },
        )


def entrance(request: HttpRequest) -> HttpResponse:
    """The first page of the back office. Staff who only work at the desk get the queue instead."""
    user = request.user
    if user.is_active and user.is_staff and works_only_at_desk(request):
        return HttpResponseRedirect(queue_url())
    index: HttpResponse = admin.site.admin_view(admin.site.index)(request)
    return index


def queue_url() -> str:
    """The address of the queue."""
    return reverse("admin:topups_fulfilment_changelist")


def _after(request: HttpRequest) -> int | None:
    after = request.GET.get("after", "")
    return int(after) if is_id(after) else None


def _strip(request: HttpRequest, after: int | None) -> dict[str, Any]:
    return {"queue": summarise_queue(staff_of(request), after=after), "after": after}
