"""Actions for people who sign in, on the pages of staff and of members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from unfold.decorators import action

from accounts.sign_in.second_factor import has_factor
from core.texts import gettext_noop, lazy
from merchants.models import Membership
from merchants.people.credentials import reset_factor, reset_needs_two, tell_of_request
from operators.frame.base import page, staff_of, url_of
from operators.sign_in.access import end_sessions, is_locked_out, unlock
from operators.sign_in.asked_changes import show_waiting_changes
from operators.sign_in.second_person import ask_or_agree

MANAGE, PROTECT = "sign_in.manage_staff", "merchants.change_membership"  # staff, members
REMOVAL = gettext_noop("remove the second factor")


class PersonPage:
    """The page of a person, with actions that end sessions, end a lockout and reset a second
    factor."""

    person_actions = ("unlock_sign_in", "end_sessions", "remove_second_factor")

    def user_of(self, obj: Any) -> User:
        """The user behind the page."""
        raise NotImplementedError

    def may_protect(self, request: HttpRequest, obj: Any) -> bool:
        """Whether this member of staff may act for the person."""
        raise NotImplementedError

    def _find(self, request: HttpRequest, object_id: Any) -> Any:
        return self.get_object(request, unquote(str(object_id)))  # type: ignore[attr-defined]

    def has_protect_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        obj = self._find(request, object_id)
        return obj is not None and self.may_protect(request, obj)

    def has_end_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for people who can sign in. The end of an access ends the sessions."""
        if not self.has_protect_permission(request, object_id):
            return False
        return self.user_of(self._find(request, object_id)).is_active

    def has_unlock_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action while there are wrong passwords that could lock the person out."""
        if not self.has_protect_permission(request, object_id):
            return False
        return request.method == "POST" or is_locked_out(
            self.user_of(self._find(request, object_id))
        )

    def has_reset_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for others who have a second factor."""
        if not self.has_protect_permission(request, object_id):
            return False
        user = self.user_of(self._find(request, object_id))
        return user != request.user and has_factor(user)

    def confirm(
        self,
        request: HttpRequest,
        object_id: str,
        *,
        title: str,
        question: str,
        facts: list[str],
        act: Callable[[Any, User], str],
    ) -> HttpResponse:
        """Asks, then calls `act` with the row and the user. `act` returns the message of success,
        or an empty text if it has shown a message itself."""
        obj = self._find(request, object_id)
        if obj is None:
            raise Http404
        user = self.user_of(obj)
        if request.method == "POST":
            done = act(obj, user)
            if done:
                messages.success(request, done)
            return HttpResponseRedirect(url_of(obj))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=obj,
            title=title,
            question=question.format(user),
            facts=facts,
            button=title,
            danger=True,
            back=url_of(obj),
        )

    @action(
        description=lazy("Unlock sign-in…"),
        icon="lock_open",
        permissions=["unlock"],
        url_path="unlock-sign-in",
    )
    def unlock_sign_in(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def act(obj: Any, user: User) -> str:
            unlock(user=user, actor=staff_of(request))
            return _("%(user)s can try a password again.") % {"user": user}

        return self.confirm(
            request,
            object_id,
            title=_("Unlock sign-in"),
            question=_("Let {} try a password again?"),
            facts=[_("The count of wrong passwords begins again. The password does not change.")],
            act=act,
        )

    @action(
        description=lazy("End sessions…"),
        icon="logout",
        permissions=["end"],
        url_path="end-sessions",
    )
    def end_sessions(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def act(obj: Any, user: User) -> str:
            ended = end_sessions(user=user, actor=staff_of(request))
            return _("Sessions ended: %(number)s.") % {"number": ended}

        return self.confirm(
            request,
            object_id,
            title=_("End sessions"),
            question=_("Sign {} out everywhere?"),
            facts=[_("They can sign in again with their password and second factor.")],
            act=act,
        )

    @action(
        description=lazy("Remove second factor…"),
        icon="phonelink_erase",
        permissions=["reset"],
        url_path="remove-second-factor",
    )
    def remove_second_factor(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def act(obj: Any, user: User) -> str:
            if ask_or_reset_factor(user=user, actor=staff_of(request)):
                return _("The second factor of %(user)s was removed.") % {"user": user}
            messages.warning(
                request,
                _(
                    "Not removed yet. Ask another member of staff to open this"
                    " page and to do the same within a day."
                ),
            )
            return ""

        show_waiting_changes(request)
        return self.confirm(
            request,
            object_id,
            title=_("Remove second factor"),
            question=_("Remove the second factor and the backup codes of {}?"),
            facts=[
                _(
                    "Do this only for a person who lost their second factor. Make sure that the"
                    " request is really from them: afterwards, their password is enough to set up"
                    " a new one."
                ),
                _(
                    "If the person is an owner, a developer, or staff who can do more than look,"
                    " two members of staff must do this: the first one asks, and the second one"
                    " removes it."
                ),
            ],
            act=act,
        )


@transaction.atomic
def ask_or_reset_factor(*, user: User, actor: User) -> bool:
    """Whether the person's second factor is removed. If two members of staff must agree, the second
    one who asks within a day removes it."""
    member = Membership.objects.filter(user=user).first()
    if reset_needs_two(user) and not ask_or_agree(
        what=REMOVAL,
        about=user,
        actor=actor,
        right=MANAGE if member is None else PROTECT,
        data={
            "url": url_of(member or user, "remove_second_factor"),
            "row": ["person", user.pk],
            "words": [[REMOVAL, {}]],
        },
    ):
        tell_of_request(user=user, actor=actor)
        return False
    reset_factor(user=user, actor=actor)
    return True
