"""What the merchants' pages have in common."""

from typing import Any

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse

from merchants.access import Member

# The menu: a word and the name of its page.
MENU = {
    "Overview": "merchants:overview",
    "Wallet": "merchants:wallet",
    "Orders": "merchants:orders",
    "Docs": "merchants:docs",
}


def show(
    request: HttpRequest, member: Member, template: str, *, status: int = 200, **context: Any
) -> TemplateResponse:
    """A page of the signed-in member, with the menu."""
    menu = [
        {"label": label, "url": reverse(name), "here": _is_here(request, reverse(name))}
        for label, name in MENU.items()
    ]
    return TemplateResponse(
        request, template, {"member": member, "menu": menu, **context}, status=status
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
    danger: bool = False,
) -> TemplateResponse:
    """Asks before something is done; the form is posted to the same address."""
    return show(
        request,
        member,
        "merchants/confirm.html",
        title=title,
        question=question,
        facts=facts or [],
        form=form,
        button=button,
        back=back,
        danger=danger,
    )


def _is_here(request: HttpRequest, url: str) -> bool:
    """The first page is every other one's beginning."""
    first = reverse("merchants:overview")
    return request.path == url or (url != first and request.path.startswith(url))
