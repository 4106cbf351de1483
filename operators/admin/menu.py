"""The menu and the first page of the back office."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from core.backoffice.declarations import FOLDED, MenuEntry, MenuPage, Section
from core.backoffice.registry import back_offices
from core.texts import lazy
from core.version import VERSION
from operators.admin.checklist import show_checklist
from operators.admin.work import show_work
from operators.desk.pages import queue_url, show_desk
from operators.frame.base import list_url, staff_of
from operators.frame.reader import may_view, registered_models
from operators.money.booking import MOVE_MONEY
from operators.orders import cases, orders
from operators.sales.sales_overview import show_figures
from operators.sign_in.password import StaffSignInForm
from operators.staff.people import MANAGE
from operators.telegram.models import Announcement
from operators.upkeep.models import ReconcileRun
from operators.upkeep.monitoring.readiness import missing_processes
from operators.upkeep.monitoring.system_page import SEES_FIGURES
from operators.upkeep.nightly_reconcile import describe_problem
from operators.warnings.models import StaffWarning
from operators.warnings.pages import show_warnings
from topups.fulfilment.transitions import FULFIL
from topups.models import Fulfilment

SECTIONS: dict[Section, list[MenuEntry]] = {
    section: [entry for app in back_offices() for entry in app.menu if entry.section == section]
    for section in Section
}
MOST_LINKS = 20
TABS = (cases.tabs, orders.tabs)  # of lists
# The right that shows that a section is a person's own work.
OWN_WORK = {
    Section.ORDERS: "cases.answer_case",
    Section.TOP_UPS: FULFIL,
    Section.CATALOGUE: "catalogue.change_product",
    Section.MERCHANTS: "accounts.change_account",
    Section.MONEY: MOVE_MONEY,
    Section.SYSTEM: MANAGE,
}
PAGES: list[MenuPage] = [page for app in back_offices() for page in app.menu_pages]

admin.site.index_title = lazy("Overview")
admin.site.login_form = StaffSignInForm
_list_apps = admin.site.get_app_list
# Django lists all models for every page. Our menu does not show that list, and few pages do.
admin.site.get_app_list = lambda *of: SimpleLazyObject(  # type: ignore[method-assign,assignment]
    lambda: _list_apps(*of)
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sections of the menu, with the pages that this person may see.

    A registered model that no app declares in its menu is listed under Records.
    """
    allowed = [
        model
        for model in registered_models()
        if admin.site.get_model_admin(model).has_view_or_change_permission(request)
    ]
    in_menu = {entry.model for entries in SECTIONS.values() for entry in entries}
    pages = [page for page in PAGES if page.opens(staff_of(request))]
    addresses = {reverse(page.page) for page in pages}
    sections: list[dict[str, Any]] = []
    for section, entries in SECTIONS.items():
        visible = [entry for entry in entries if entry.model in allowed]
        if section is Section.RECORDS:
            visible += [_default_entry(model) for model in allowed if model not in in_menu]
        of_section = [page for page in pages if page.section == section]
        links = [*map(_page_link, of_section), *map(_entry_link, visible)]
        for link in links:
            # The address of a page may begin with that of a list.
            if request.path in addresses and request.path != link["link"]:
                link["active"] = False
        if links:
            sections.append({"section": section, "title": section.label, "items": links})
    if not sections:
        return []
    if not works_only_at_desk(request):
        overview = {"title": _("Overview"), "icon": "home", "link": reverse("admin:index")}
        sections.insert(0, {"section": None, "title": "", "items": [overview]})
    return _folded(_own_work_first(sections, staff_of(request)))


def _own_work_first(sections: list[dict[str, Any]], user: User) -> list[dict[str, Any]]:
    """First the sections in which this person changes something, then those that they read."""

    def rank(section: dict[str, Any]) -> int:
        name = section["section"]
        if name is None or user.is_superuser:
            return 0
        return 1 if user.has_perm(OWN_WORK.get(name, "")) else 2 + (name in FOLDED)

    return sorted(sections, key=rank)


def _folded(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With more links than a person takes in at a glance, some sections are folded."""
    is_long = sum(len(section["items"]) for section in sections) > MOST_LINKS
    for number, section in enumerate(sections):
        section["separator"] = bool(number)
        section["collapsible"] = is_long and section["section"] in FOLDED
    return sections


def entrance(request: HttpRequest) -> HttpResponse:
    """The first page of the back office. Staff who only work at the desk get the queue instead."""
    user = request.user
    if user.is_active and user.is_staff and works_only_at_desk(request):
        return HttpResponseRedirect(queue_url())
    index: HttpResponse = admin.site.admin_view(admin.site.index)(request)
    return index


def works_only_at_desk(request: HttpRequest) -> bool:
    """Whether this person sees nothing but the desk, which is then their first page."""
    sees = {
        model
        for model in registered_models()
        if admin.site.get_model_admin(model).has_view_or_change_permission(request)
    }
    return bool(request.user.has_perm(FULFIL)) and sees <= {Fulfilment, Announcement, StaffWarning}


def _default_entry(model: type[Model]) -> MenuEntry:
    title = capfirst(str(model._meta.verbose_name_plural))
    return MenuEntry(Section.RECORDS, title, model, "database")


def first_page(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Adds to the context of the first page: version, work, the desk, sales and stock."""
    context["version"] = VERSION
    if request.user.has_perm(FULFIL):
        context["desk"] = show_desk(staff_of(request))
    missing = missing_processes()
    if request.user.has_perm(SEES_FIGURES):
        context["missing"] = missing
    context |= show_warnings(request)
    context |= show_work(staff_of(request))
    context["checklist"] = show_checklist(staff_of(request))
    context |= cases.show_waiting_cases(request)
    context |= show_figures(request, staff_of(request), missing=missing)
    if may_view(request, ReconcileRun):
        context["reconcile"] = describe_problem()
        context["reconcile_url"] = list_url(ReconcileRun)
    return context


def subheader(request: HttpRequest) -> str:
    """The line below the name of the back office."""
    return _("Back office, times in %(zone)s") % {"zone": timezone.get_current_timezone_name()}


def tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """The tabs above the list that the request asks for."""
    return [one for tabs_of in TABS for one in tabs_of(request)]


def stylesheet(request: HttpRequest) -> str:
    """Our stylesheet, loaded after the theme's."""
    return static("operators/admin.css")


def script(request: HttpRequest) -> str:
    """Our script for screen readers and keyboards."""
    return static("operators/landmarks.js")


def shortcuts(request: HttpRequest) -> str:
    """Our script for keyboard shortcuts."""
    return static("operators/keys.js")


def icon(request: HttpRequest) -> str:
    """The icon of the browser tab. Without one, browsers request a file that does not exist."""
    return static("operators/icon.svg")


def _entry_link(entry: MenuEntry) -> dict[str, Any]:
    link = reverse(entry.page) if entry.page else list_url(entry.model)
    link += f"?{entry.query}" if entry.query else ""
    key = entry.model._meta.label_lower
    return {"title": entry.title, "icon": entry.icon, "link": link, "key": key}


def _page_link(page: MenuPage) -> dict[str, Any]:
    link = reverse(page.page)
    return {"title": page.title, "icon": page.icon, "link": link, "key": page.page}
