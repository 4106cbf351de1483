"""The merchants' people, for staff: memberships, invitations, and the emails sent to them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter
from unfold.decorators import action, display
from unfold.enums import ActionVariant

from accounts.form_fields import posted
from core.inputs import InputProblem
from core.texts import inside_sentence, lazy
from merchants.models import Email, Invitation, Membership, Role
from merchants.people.invitations import (
    approve_invitation,
    check_invitation,
    invite_person,
    withdraw_invitation,
)
from merchants.people.members import block_member, members_of, unblock_member
from operators.frame.base import (
    BackOfficeAdmin,
    Colours,
    RecordAdmin,
    linked,
    page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.long_lists import LongRecordAdmin, PeriodFilter
from operators.merchants.account_hub import EMAIL_STATES
from operators.merchants.switching import SwitchForm
from operators.staff.people import PROTECT, PersonPage

# Of an invitation, where the model's word does not say what it waits for.
STATES = {"open": lazy("open, not accepted yet"), "waiting": lazy("waits for approval")}


@admin.register(Membership)
class MembershipAdmin(PersonPage, RecordAdmin):
    """Shows memberships. Owners manage the members of their account; staff invite the first one,
    and block people whose sign-in was stolen."""

    actions_detail = (*PersonPage.person_actions, "block", "unblock")

    change_form_before_template = "admin/about_members.html"

    list_display = ("person", "account", "role", "active", "last_signed_in_at", "created_at")
    list_filter = (
        ("role", ChoicesDropdownFilter),
        ("account", AutocompleteSelectFilter),
        ("user__is_active", admin.BooleanFieldListFilter),
    )
    list_select_related = ("user", "account")
    search_fields = ("user__email", "account__name")
    search_help_text = lazy("Email or account")
    ordering = ("-id",)
    fields = (
        "person",
        "account",
        "role",
        "active",
        "blocked_at",
        "last_signed_in_at",
        "created_at",
    )

    @admin.display(description=lazy("person"))
    def person(self, membership: Membership) -> str:
        return membership.user.get_username()

    def user_of(self, obj: Membership) -> User:
        return obj.user

    def may_protect(self, request: HttpRequest, obj: Membership) -> bool:
        return staff_of(request).has_perm(PROTECT)

    def has_block_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for people who can sign in."""
        obj = self.get_object(request, unquote(str(object_id)))
        may = isinstance(obj, Membership) and self.may_protect(request, obj)
        return may and (obj.user.is_active or request.method == "POST")

    def has_unblock_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action for people whom staff have blocked."""
        obj = self.get_object(request, unquote(str(object_id)))
        may = isinstance(obj, Membership) and self.may_protect(request, obj)
        return may and (obj.blocked_at is not None or request.method == "POST")

    @action(
        description=lazy("Block…"),
        icon="block",
        permissions=["block"],
        url_path="block",
        variant=ActionVariant.DANGER,
    )
    def block(self, request: HttpRequest, object_id: str) -> HttpResponse:
        member = self.get_object(request, unquote(object_id))
        if not isinstance(member, Membership):
            raise Http404
        form = SwitchForm(posted(request))
        form.fields["reason"].help_text = _(
            "The audit trail keeps it, and all members of the account receive it by email."
        )
        if form.is_valid():
            try:
                block_member(membership=member, actor=staff_of(request), **form.cleaned_data)
            except InputProblem as problem:
                messages.error(request, str(problem))
            else:
                messages.success(request, _("%(user)s is blocked.") % {"user": member.user})
            return HttpResponseRedirect(url_of(member))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=member,
            title=_("Block a person"),
            form=form,
            question=_("Block %(user)s of %(account)s?")
            % {"user": member.user, "account": member.account},
            facts=[
                _(
                    "They are signed out everywhere and cannot sign in until you unblock them."
                    " The keys of the account's clients keep working: revoke those that may be"
                    " stolen."
                ),
            ],
            button=_("Block"),
            danger=True,
            back=url_of(member),
        )

    @action(description=lazy("Unblock…"), icon="check", permissions=["unblock"], url_path="unblock")
    def unblock(self, request: HttpRequest, object_id: str) -> HttpResponse:
        def act(obj: Any, user: User) -> str:
            unblocked = unblock_member(membership=obj, actor=staff_of(request))
            done = _("%(user)s can sign in again.") if unblocked else _("%(user)s was not blocked.")
            return done % {"user": user}

        return self.confirm(
            request,
            object_id,
            title=_("Unblock"),
            question=_("Let {} sign in again?"),
            facts=[
                _(
                    "Make sure that the person has their mailbox back. Their old password works"
                    " again: ask them to reset it at once, on the sign-in page."
                )
            ],
            act=act,
        )

    @display(description=lazy("active"), boolean=True)
    def active(self, membership: Membership) -> bool:
        return membership.user.is_active

    @admin.display(description=lazy("last signed in"))
    def last_signed_in_at(self, membership: Membership) -> str:
        return time_cell(membership.user.last_login, never=_("never"))


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Invitation
        fields = ["account", "email", "role"]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                check_invitation(account=cleaned["account"], email=cleaned["email"])
            except InputProblem as problem:
                raise ValidationError(str(problem)) from None
        return cleaned


@admin.register(Invitation)
class InvitationAdmin(BackOfficeAdmin):
    """Invites a person by email. A sent invitation can be withdrawn, not changed."""

    records_itself = True  # merchants/people/invitations.py does
    add_button = lazy("Invite")
    form = InvitationForm
    list_display = ("email", "account", "role", "state", "invited_by", "created_at", "expires_at")
    list_filter = (("account", AutocompleteSelectFilter), ("role", ChoicesDropdownFilter))
    list_select_related = ("account", "invited_by")
    search_fields = ("email", "account__name")
    search_help_text = lazy("Email or account")
    help_texts = {
        "email": lazy(
            "Receives a link to join when you save. If the account has an owner, a key or money,"
            " another member of staff approves the invitation first."
        )
    }
    ordering = ("-id",)
    autocomplete_fields = ("account",)
    actions = None
    actions_detail = ("approve", "withdraw")
    inviter = linked("invited_by", lazy("invited by"))
    approver = linked("approved_by", lazy("approved by"))

    def get_fields(self, request: HttpRequest, obj: Invitation | None = None) -> tuple[str, ...]:
        editable = ("account", "email", "role")
        approved = ("approver",) if obj and obj.approved_by else ()
        others = ("state", "inviter", *approved, "created_at", "expires_at")
        return editable if obj is None else (*editable, *others)

    def response_post_save_add(self, request: HttpRequest, obj: Invitation) -> HttpResponse:
        """Leads back to the account's page, which lists its people and invitations."""
        if request.user.has_perm("accounts.view_account"):
            return HttpResponseRedirect(url_of(obj.account))
        return super().response_post_save_add(request, obj)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"role": Role.OWNER, **super().get_changeform_initial_data(request)}

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_delete_permission = has_change_permission

    def has_approve_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action while the invitation waits, and not to the person who made it."""
        if not self._may_invite(request):
            return False
        if object_id is None:
            return True
        obj = self.get_object(request, unquote(str(object_id)))
        if not isinstance(obj, Invitation) or obj.state != "waiting":
            return False
        return obj.invited_by_id != staff_of(request).pk

    def has_withdraw_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Offers the action until the invitation ends. A second click on it gets a message."""
        if not self._may_invite(request):
            return False
        if object_id is None or request.method == "POST":
            return True
        obj = self.get_object(request, unquote(str(object_id)))
        return isinstance(obj, Invitation) and obj.state in {"open", "waiting"}

    def _may_invite(self, request: HttpRequest) -> bool:
        return staff_of(request).has_perm("merchants.add_invitation")

    @action(
        description=lazy("Approve and send…"),
        icon="done",
        permissions=["approve"],
        url_path="approve",
    )
    def approve(self, request: HttpRequest, object_id: str) -> HttpResponse:
        invitation = self.get_object(request, unquote(object_id))
        if not isinstance(invitation, Invitation):
            raise Http404
        if request.method == "POST":
            return self._approve(request, invitation)
        owners = members_of(invitation.account).filter(role=Role.OWNER)
        names = ", ".join(owner.user.email for owner in owners)
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=invitation,
            title=_("Approve an invitation"),
            question=_("Let %(email)s into %(account)s as %(role)s?")
            % {
                "email": invitation.email,
                "account": invitation.account,
                "role": inside_sentence(invitation.get_role_display()),
            },
            facts=[
                _(
                    "%(person)s made this invitation. Ask them why, and check with"
                    " the merchant through a contact that you know. The invited person"
                    " may be able to spend the merchant's money."
                )
                % {"person": invitation.invited_by},
                _("Owners of this account: %(owners)s.") % {"owners": names or _("none is active")},
            ],
            button=_("Approve and send"),
            danger=True,
            back=url_of(invitation),
        )

    def _approve(self, request: HttpRequest, invitation: Invitation) -> HttpResponse:
        try:
            approved = approve_invitation(invitation=invitation, actor=staff_of(request))
        except InputProblem as problem:
            messages.error(request, str(problem))
        else:
            if approved:
                messages.success(
                    request,
                    _("The invitation is being sent to %(email)s.") % {"email": invitation.email},
                )
            else:
                messages.warning(request, _("This invitation no longer waits for approval."))
        return HttpResponseRedirect(url_of(invitation))

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **options)
        except InputProblem as problem:  # a concurrent change, made after the form's own check
            messages.error(request, str(problem))
            return HttpResponseRedirect(reverse("admin:merchants_invitation_changelist"))

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: Any) -> None:
        invitation = invite_person(
            account=obj.account, email=obj.email, role=Role(obj.role), invited_by=staff_of(request)
        )
        obj.pk = invitation.pk
        if invitation.needs_approval:
            messages.warning(
                request,
                _(
                    "This account has an owner, a key or money, so the invitation is not sent"
                    " yet. Ask another member of staff to open it here and to approve it. The"
                    " members receive an email."
                ),
            )

    @display(
        description=lazy("state"),
        label=Colours(
            {
                STATES["open"]: "info",
                STATES["waiting"]: "warning",
                lazy("accepted"): "success",
                lazy("withdrawn"): "warning",
                lazy("expired"): "danger",
            }
        ),
    )
    def state(self, invitation: Invitation) -> str:
        return str(STATES.get(invitation.state) or _(invitation.state))

    @action(
        description=lazy("Withdraw…"), icon="close", permissions=["withdraw"], url_path="withdraw"
    )
    def withdraw(self, request: HttpRequest, object_id: str) -> HttpResponse:
        invitation = self.get_object(request, unquote(object_id))
        if not isinstance(invitation, Invitation):
            raise Http404
        if request.method != "POST":
            sent = invitation.state == "open"
            return page(
                self,
                request,
                "admin/confirm.html",
                obj=invitation,
                title=_("Withdraw an invitation"),
                question=_("Withdraw the invitation of %(email)s to %(account)s?")
                % {"email": invitation.email, "account": invitation.account},
                facts=[_("The link in the email stops working.")] if sent else [],
                button=_("Withdraw"),
                danger=True,
                back=url_of(invitation),
            )
        if withdraw_invitation(invitation=invitation, actor=staff_of(request)):
            messages.success(request, _("The invitation is withdrawn."))
        else:
            messages.warning(request, _("This invitation can no longer be withdrawn."))
        return HttpResponseRedirect(url_of(invitation))


@admin.register(Email)
class EmailAdmin(LongRecordAdmin):
    """The emails to members. Neither their text nor their secret links are stored."""

    list_display = ("id", "kind", "to", "state_badge", "created_at", "sent_at", "attempts")
    list_filter = (("kind", ChoicesDropdownFilter), ("created_at", PeriodFilter))
    search_fields = ("to",)
    search_help_text = lazy("Address; a part of it finds newer emails")
    ordering = ("-id",)
    fields = (*list_display, "given_up_at")

    def reads_too_much(self, request: HttpRequest, filters: set[str], term: str) -> bool:
        return bool(filters or term) and not _is_address(term)

    def search(
        self, queryset: QuerySet[Email], term: str, request: HttpRequest
    ) -> tuple[QuerySet[Email], bool]:
        """Finds any email by the whole address, and newer ones by a part of it."""
        if _is_address(term):
            return queryset.filter(to__in=(term, term.lower())), False
        return super().search(queryset, term, request)

    @display(
        description=lazy("state"),
        label=Colours(
            {
                EMAIL_STATES["sent"]: "success",
                EMAIL_STATES["waiting"]: "info",
                EMAIL_STATES["given up"]: "danger",
            }
        ),
    )
    def state_badge(self, email: Email) -> str:
        return str(EMAIL_STATES[email.state])


def _is_address(term: str) -> bool:
    try:
        validate_email(term)
    except ValidationError:
        return False
    return True
