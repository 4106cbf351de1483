"""What the merchants' pages have in common."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse

from merchants.models import Role
from merchants.people.access import Member

# The menu: a word and the name of its page.
MENU = {
    "Overview": "merchants:overview",
    "API access": "merchants:clients",
    "References": "merchants:references",
    "Wallet": "merchants:wallet",
    "Orders": "merchants:orders",
    "People": "merchants:people",
    "Docs": "merchants:docs",
    "Account": "merchants:account",
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


def posted(request: HttpRequest) -> QueryDict | None:
    """What a form is filled with: nothing where it is only looked at."""
    return request.POST if request.method == "POST" else None


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
    """Asks before something is done; the form is posted to the same address, `hidden` with it."""
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


def _is_here(request: HttpRequest, url: str) -> bool:
    """The first page is every other one's beginning."""
    first = reverse("merchants:overview")
    return request.path == url or (url != first and request.path.startswith(url))
