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
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from accounts.models import Account
from accounts.rates import seconds_to_wait
from core.http.error_page import error_page
from merchants.models import Membership, Role
from merchants.people.sessions import note_session_use

P = ParamSpec("P")
MemberView = Callable[Concatenate[HttpRequest, "Member", P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]

# Requests a minute of all members of one account. Pages and purchases share the web processes.
PAGES_PER_MINUTE = 300
HEAVY_PAGES_PER_MINUTE = 12  # each may take a second or more: exports, imports, sums


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
        return "This account is switched off, so nothing can be changed in it. Contact support."
    return (
        f"Your role, {member.role.label.lower()}, does not allow it. Ask an owner of your account"
        " to change your role."
    )


def find_member(request: HttpRequest) -> Member | None:
    """The member who sends this request; None for anonymous visitors, staff and other users."""
    user = request.user
    if not isinstance(user, User) or user.is_staff:
        return None
    membership = Membership.objects.select_related("account").filter(user=user).first()
    if membership is None:
        return None
    return Member(user, membership.account, Role(membership.role))


def member_page(
    least: Role = Role.VIEWER, *, heavy: bool = False
) -> Callable[[MemberView[P]], View[P]]:
    """Restricts a view to members with at least this role, and passes it the member.

    The member is the view's second argument. Anonymous visitors are redirected to the sign-in
    page. Signed-in users without the role raise PermissionDenied (403). An account that opens too
    many pages, or too many `heavy` ones, gets a 429 page.
    """

    def decorate(view: MemberView[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _sign_in(request)
            member = find_member(request)
            if member is None:
                raise PermissionDenied("You are not a member of a merchant's account.")
            if not member.may(least):
                raise PermissionDenied(_why_not(member))
            wait = _seconds_to_wait(member.account, heavy=heavy)
            if wait:
                return _too_many_requests(wait)
            note_session_use(request=request, user=member.user)
            return view(request, member, *args, **kwargs)

        return guarded

    return decorate


def _seconds_to_wait(account: Account, *, heavy: bool) -> int:
    wait = seconds_to_wait(group="merchant_pages", key=account.pk, limit=PAGES_PER_MINUTE)
    if heavy and not wait:
        wait = seconds_to_wait(
            group="merchant_heavy_pages", key=account.pk, limit=HEAVY_PAGES_PER_MINUTE
        )
    return wait


def _too_many_requests(wait: int) -> HttpResponse:
    seconds = "1 second" if wait == 1 else f"{wait} seconds"
    return error_page(
        "merchants/error.html",
        HTTPStatus.TOO_MANY_REQUESTS,
        "Too many requests",
        "Your account has opened too many pages or files in the last minute. Nothing was changed."
        f" Wait {seconds} and try again.",
        home=("Go to the overview", reverse("merchants:overview")),
    )


def _sign_in(request: HttpRequest) -> HttpResponse:
    query = urlencode({"next": request.get_full_path()})
    return HttpResponseRedirect(f"{reverse('merchants:sign_in')}?{query}")
