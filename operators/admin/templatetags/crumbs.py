"""The path at the top of a page of the back office, in the words of the menu."""

import re
from functools import cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from core.backoffice.declarations import MenuEntry
from core.backoffice.registry import back_offices
from operators.frame.row_names import row_name
from operators.telegram.models import PlatformSettings

register = template.Library()

# Rows without a name.
NUMBERED = re.compile(r"(chat|code|hold|root|session) \d+|close of wallet .+")


@register.filter
def like_the_menu(parts: list[dict[str, Any]], request: HttpRequest) -> list[dict[str, Any]]:
    """The theme's parts: app, list and object. The app is left out: the menu shows the section.
    The list is named like its entry in the menu, and the object as it is, such as `codes.csv`. A
    list to which the menu does not lead has its own name. A form for a new object says so. The
    settings, which have no list, are named once."""
    entry = _entries().get(str(parts[1].get("link"))) if len(parts) > 1 else None
    if entry is None:
        return [{**part, "title": capfirst(str(part["title"]))} for part in parts]
    link = reverse(entry.page) if entry.page else parts[1]["link"]
    crumbs = [{"link": link, "title": entry.title}]
    if entry.model is not PlatformSettings:
        crumbs += [{**part, "title": _own(entry, part)} for part in parts[2:]]
    if request.path.endswith("/add/"):
        crumbs.append({"title": _("New %(kind)s") % {"kind": entry.model._meta.verbose_name}})
    return crumbs


def _own(entry: MenuEntry, part: dict[str, Any]) -> str:
    name = str(part["title"])
    words = row_name(entry.model, name)
    return capfirst(words) if NUMBERED.fullmatch(name) else words


@cache
def _entries() -> dict[str, MenuEntry]:
    """The entry of each list in the menu, by the list's address."""
    return {
        reverse(
            f"admin:{entry.model._meta.app_label}_{entry.model._meta.model_name}_changelist"
        ): entry
        for app in back_offices()
        for entry in app.menu
    }
