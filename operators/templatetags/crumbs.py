"""The path at the top of a page of the back office, in the words of the menu."""

from functools import cache
from typing import Any

from django import template
from django.urls import reverse

from operators.declarations import BACK_OFFICES

register = template.Library()


@register.filter
def like_the_menu(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The theme's parts: app, list and object. The app becomes the section of the menu, and the
    list its entry there. Pages that are no list or object stay as they are."""
    place = _places().get(str(parts[1].get("link"))) if len(parts) > 1 else None
    if place is None:
        return parts
    section, title = place
    return [{"title": section}, {**parts[1], "title": title}, *parts[2:]]


@cache
def _places() -> dict[str, tuple[str, str]]:
    """The section and the title of each list, by its address."""
    return {
        reverse(f"admin:{entry.model._meta.app_label}_{entry.model._meta.model_name}_changelist"): (
            entry.section,
            entry.title,
        )
        for app in BACK_OFFICES
        for entry in app.menu
    }
