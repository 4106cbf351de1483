"""Which member sends a request, and for which account.

Only this module determines the account of a request: it is the account of the signed-in person's
membership. No path, form or query names an account, so none can name another merchant's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
)
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Account
from accounts.rates import seconds_to_wait
from core.http.error_page import error_page
from merchants.frame.downloads import FileRequest
from merchants.models import Role
from merchants.people.members import membership_of
from merchants.people.sessions import note_session_use

P = ParamSpec("P")
MemberView = Callable[Concatenate[HttpRequest, "Member", P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

# Requests a minute of one member, and of all members of one account. Pages and purchases may share
# the web processes. A heavy page may take a second or more: exports, imports, sums, and
# forms with files.
PAGES_PER_MINUTE, ACCOUNT_PAGES_PER_MINUTE = 300, 600
HEAVY_PAGES_PER_MINUTE, ACCOUNT_HEAVY_PAGES_PER_MINUTE = 12, 24


@dataclass(frozen=True)
class Member:
    """A signed-in person of an account."""

    user: User
    account: Account
    role: Role

    def may(self, role: Role) -> bool:
        """Whether the member may do what `role` may. In a disabled account everybody only reads."""
        return role is Role.VIEWER or (self.account.enabled and self.role.includes(role))


def _why_not(member: Member) -> str:
    if not member.account.enabled:
        return _("This account is switched off, so nothing can be changed in it. Contact support.")
    return _(
        "Your role, %(label)s, does not allow it. Ask an owner of your account to change your role."
    ) % {"label": member.role.in_sentence}


def find_member(request: HttpRequest) -> Member | None:
    """The member who sends this request; None for anonymous visitors, staff and other users."""
    user = request.user
    if not isinstance(user, User) or user.is_staff:
        return None
    membership = membership_of(user)
    if membership is None:
        return None
    return Member(user, membership.account, Role(membership.role))


def member_page(
    least: Role = Role.VIEWER, *, heavy: bool = False, protects: bool = False
) -> Callable[[MemberView[P]], View[P]]:
    """Restricts a view to members with at least this role, and passes it the member.

    The member is the view's second argument. Anonymous visitors are redirected to the sign-in
    page. Signed-in users without the role raise PermissionDenied (403). A member or an account that
    opens too many pages, or too many `heavy` ones, gets a 429 page; a form with files counts as
    heavy. A page that `protects` the account, or leads to one that does, has a counter of its own
    for each member: nobody else can keep a member from it.
    """

    def decorate(view: MemberView[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _sign_in(request)
            member = find_member(request)
            if member is None:
                raise PermissionDenied(_("You are not a member of a merchant's account."))
            if not member.may(least):
                raise PermissionDenied(_why_not(member))
            if isinstance(request, FileRequest):
                return view(request, member, *args, **kwargs)
            has_files = bool(request.FILES)
            wait = _seconds_to_wait(member, heavy=heavy or has_files, protects=protects)
            if wait:
                return _too_many_requests(wait)
            note_session_use(request=request, user=member.user)
            return view(request, member, *args, **kwargs)

        return guarded

    return decorate


def _seconds_to_wait(member: Member, *, heavy: bool, protects: bool) -> int:
    user, account = member.user.pk, member.account.pk
    if protects:
        return seconds_to_wait(group="merchant_protection", key=user, limit=PAGES_PER_MINUTE)
    counters = [
        ("merchant_pages", user, PAGES_PER_MINUTE),
        ("merchant_account_pages", account, ACCOUNT_PAGES_PER_MINUTE),
        ("merchant_heavy_pages", user, HEAVY_PAGES_PER_MINUTE),
        ("merchant_account_heavy_pages", account, ACCOUNT_HEAVY_PAGES_PER_MINUTE),
    ]
    waits = (
        seconds_to_wait(group=group, key=key, limit=limit)
        for group, key, limit in counters[: 4 if heavy else 2]
    )
    return next(filter(None, waits), 0)


def seconds_until_next_file(account: Account) -> int:
    """How long a program with a key for books has to wait; 0 if it may download a file now."""
    return seconds_to_wait(
        group="merchant_account_heavy_pages",
        key=account.pk,
        limit=ACCOUNT_HEAVY_PAGES_PER_MINUTE,
    )


def seconds_until_next_part(account: Account) -> int:
    """How long a program has to wait; 0 if it may download a part of a prepared file now."""
    return seconds_to_wait(
        group="merchant_account_pages", key=account.pk, limit=ACCOUNT_PAGES_PER_MINUTE
    )


def _too_many_requests(wait: int) -> HttpResponse:
    seconds = ngettext("%(wait)s second", "%(wait)s seconds", wait) % {"wait": wait}
    return error_page(
        "merchants/error.html",
        HTTPStatus.TOO_MANY_REQUESTS,
        _("Too many requests"),
        _(
            "You or your colleagues have opened too many pages or files in the last minute."
            " Nothing was changed. Wait %(seconds)s and try again. You can still revoke keys,"
            " switch clients off, remove people and end sessions."
        )
        % {"seconds": seconds},
        home=(_("Go to the clients"), reverse("merchants:clients")),
    )


def _sign_in(request: HttpRequest) -> HttpResponse:
    if request.headers.get("Authorization", "").lower().startswith("bearer "):
        return JsonResponse(
            {"message": "No key opens this address. Sign in with a browser."},
            status=HTTPStatus.FORBIDDEN,
        )
    query = urlencode({"next": request.get_full_path()})
    return HttpResponseRedirect(f"{reverse('merchants:sign_in')}?{query}")
