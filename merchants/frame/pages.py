"""Rendering that all pages of the merchant site share: the menu and the confirmation page."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse

from core.texts import lazy
from merchants.models import Role
from merchants.people.access import Member

# The menu's labels, each with the URL name of its page.
MENU = {
    lazy("Overview"): "merchants:overview",
    lazy("Orders"): "merchants:orders",
    lazy("Cases"): "merchants:cases",
    lazy("Wallet"): "merchants:wallet",
    lazy("Prices"): "merchants:prices",
    lazy("References"): "merchants:references",
    lazy("API access"): "merchants:clients",
    lazy("Requests"): "merchants:requests",
    lazy("Docs"): "docs:start",
    lazy("People"): "merchants:people",
    lazy("Profile"): "merchants:profile",
}
# The first entry of each group but the first.
BEGINS = ("merchants:prices", "merchants:clients", "merchants:people")

# Pages outside the path of the menu entry that leads to them.
BELOW = {"merchants:reports": "merchants:profile", "merchants:company": "merchants:people"}


def show(
    request: HttpRequest, member: Member, template: str, *, status: int = 200, **context: Any
) -> TemplateResponse:
    """Renders a page with the menu. `context` goes to the template."""
    menu = [
        {
            "label": label,
            "url": reverse(name),
            "here": _is_here(request, name),
            "begins": name in BEGINS,
        }
        for label, name in MENU.items()
    ]
    return TemplateResponse(
        request,
        template,
        {
            "member": member,
            "menu": menu,
            "may_own": member.may(Role.OWNER),
            "may_develop": member.may(Role.DEVELOPER),
            **context,
        },
        status=status,
    )


def confirm(
    request: HttpRequest,
    member: Member,
    *,
    title: str,
    question: str,
    button: str,
    back: str,
    facts: list[str] | None = None,
    form: Any = None,
    hidden: Mapping[str, str] | None = None,
    danger: bool = False,
) -> TemplateResponse:
    """Renders a page that asks for confirmation.

    Its form posts to the same address, with `form` and the `hidden` values. `back` is the address
    of the "Cancel" link. `danger` makes the button red.
    """
    return show(
        request,
        member,
        "merchants/confirm.html",
        title=title,
        question=question,
        facts=facts or [],
        form=form,
        hidden=hidden or {},
        button=button,
        back=back,
        danger=danger,
    )


def _is_here(request: HttpRequest, name: str) -> bool:
    """Whether the menu entry is current. Every path starts with the overview's."""
    url, first = reverse(name), reverse("merchants:overview")
    if request.path == url or (url != first and request.path.startswith(url)):
        return True
    return any(
        request.path.startswith(reverse(page)) for page, entry in BELOW.items() if entry == name
    )
