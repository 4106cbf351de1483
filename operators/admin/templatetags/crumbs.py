"""The path at the top of a page of the back office, and its title, in the words of the menu."""

from functools import cache
from typing import Any

from django import template
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.template import Context
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from core.backoffice.declarations import MenuEntry
from core.backoffice.registry import back_offices
from operators.telegram.models import PlatformSettings

register = template.Library()


@register.filter
def like_the_menu(parts: list[dict[str, Any]], request: HttpRequest) -> list[dict[str, Any]]:
    """The theme's parts: app, list and object. The app is left out: the menu shows the section.
    The list is named like its entry in the menu, and the object as it is, such as `codes.csv`. A
    list to which the menu does not lead has its own name. A form for a new object says so. The
    settings, which have no list, are named once. A page of an action is the last part."""
    entry = _entries().get(str(parts[1].get("link"))) if len(parts) > 1 else None
    if entry is None:
        return [{**part, "title": capfirst(str(part["title"]))} for part in parts]
    link = reverse(entry.page) if entry.page else parts[1]["link"]
    crumbs = [{"link": link, "title": entry.title}]
    if entry.model is not PlatformSettings:
        crumbs += [{**part, "title": _name_of(part["title"])} for part in parts[2:]]
    if request.path.endswith("/add/"):
        crumbs.append({"title": _new(entry.model)})
    title = getattr(request, "page_title", "")
    if title and title != crumbs[-1]["title"]:
        crumbs.append({"title": title})
    return crumbs


@register.simple_tag(takes_context=True)
def tab_title(context: Context) -> str:
    """The name of the page for the tab of the browser: a list as in the menu, a row by its name,
    and an action with the row that it is about."""
    flat: dict[str, Any] = context.flatten()  # type: ignore[assignment]
    if "cl" in flat:
        entry = _entries().get(_list_of(flat["cl"].model))
        return str(entry.title if entry else capfirst(flat["opts"].verbose_name_plural))
    row = flat.get("original") or flat.get("object")
    if flat.get("add") and row is None:
        return _new(flat["opts"].model)
    if "action_list" in flat:  # Django's own history, to which no page leads
        return _("History")
    if flat.get("change") and row is not None:
        return _name_of(row)
    title = str(flat.get("title") or "")
    name = _name_of(row) if isinstance(row, Model) else ""
    return title if not name or name in title else f"{title} · {name}"


def _new(model: type[Model]) -> str:
    return _("New %(kind)s") % {"kind": model._meta.verbose_name}


def _name_of(row: Any) -> str:
    """The name of a row on its own pages. The page of its model may know a better one."""
    if not admin.site.is_registered(type(row)):
        return str(row)
    page: Any = admin.site.get_model_admin(type(row))
    return str(getattr(page, "name_of", str)(row))


def _list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


@cache
def _entries() -> dict[str, MenuEntry]:
    """The entry of each list in the menu, by the list's address."""
    return {_list_of(entry.model): entry for app in back_offices() for entry in app.menu}
