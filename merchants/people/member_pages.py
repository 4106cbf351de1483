"""The account's members and invitations. Owners invite people, change roles and remove members."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts.form_fields import posted
from core.files.table_files import Word
from core.inputs import InputProblem
from core.texts import gettext_noop
from merchants.frame.exports import send_table
from merchants.frame.forms import InviteForm, RoleForm
from merchants.frame.pages import confirm, show
from merchants.models import Role
from merchants.people.access import Member, member_page
from merchants.people.invitations import invite_person, live_invitations, withdraw_invitation
from merchants.people.members import (
    change_role,
    members_and_blocked,
    members_of,
    remove_member,
    require_factors,
    with_factors,
)


@require_safe
@member_page(protects=True)
def people(request: HttpRequest, member: Member) -> HttpResponse:
    """Lists the members and the open invitations."""
    members = list(with_factors(members_and_blocked(member.account)))
    owners = [one.pk for one in members if one.role == Role.OWNER and not one.blocked_at]
    return show(
        request,
        member,
        "merchants/people.html",
        title=_("People"),
        members=members,
        only_owner=owners[0] if len(owners) == 1 else None,
        invitations=live_invitations(member.account).order_by("pk"),
    )


@require_safe
@member_page()
def export(request: HttpRequest, member: Member, format: str) -> HttpResponseBase:
    """The members and the open invitations as a file."""
    invitations = live_invitations(member.account).order_by("pk")
    return send_table(
        request,
        member,
        name="people",
        format=format,
        columns=("email", "role", "state", "last_sign_in", "valid_until"),
        rows=[
            *(
                [
                    person.user.email,
                    Role(person.role),
                    Word(gettext_noop("blocked") if person.blocked_at else gettext_noop("member")),
                    person.user.last_login,
                    None,
                ]
                for person in members_and_blocked(member.account)
            ),
            *(
                [one.email, Role(one.role), Word(one.state), None, one.expires_at]
                for one in invitations
            ),
        ],
        back="merchants:people",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def invite(request: HttpRequest, member: Member) -> HttpResponse:
    """Invites a person by email."""
    form = InviteForm(posted(request))
    if form.is_valid():
        try:
            invitation = invite_person(
                account=member.account,
                email=form.cleaned_data["email"],
                role=Role(form.cleaned_data["role"]),
                invited_by=member.user,
            )
        except InputProblem as problem:
            form.add_error(None, str(problem))
        else:
            messages.success(
                request,
                _("The invitation is being sent to %(email)s.") % {"email": invitation.email},
            )
            return _back()
    return confirm(
        request,
        member,
        title=_("Invite a person"),
        question=_("Who do you want to invite?"),
        facts=[_("They get an email with a link that is valid for seven days.")],
        form=form,
        button=_("Invite"),
        back=reverse("merchants:people"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER, protects=True)
def second_factors(request: HttpRequest, member: Member) -> HttpResponse:
    """Requires a second factor of every member, or no longer."""
    account = member.account
    choice = request.POST.get("required")
    if choice in ("on", "off"):  # a form without a value must not lower the protection
        if require_factors(account=account, required=choice == "on", actor=member.user):
            messages.success(
                request,
                _("A second factor is now required of everybody.")
                if choice == "on"
                else _("A second factor is no longer required of everybody."),
            )
        return _back()
    members = with_factors(members_of(account))
    without = [one.user.email for one in members if not one.has_factor]
    required = account.needs_factors
    return confirm(
        request,
        member,
        title=_("Second factors"),
        question=_("Let people sign in with only their password again?")
        if required
        else _("Require a second factor of everybody in %(account)s?") % {"account": account},
        facts=[_("People who have a second factor keep it until they turn it off.")]
        if required
        else [
            _(
                "Those who have none set it up on the next page that they open. Until then they see"
                " and change nothing. API keys keep working."
            ),
            _("Without one now: %(value)s.") % {"value": ", ".join(without) or _("nobody")},
        ],
        hidden={"required": "off" if required else "on"},
        button=_("No longer require") if required else _("Require"),
        danger=required,
        back=reverse("merchants:people"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER, protects=True)
def withdraw(request: HttpRequest, member: Member, invitation_id: int) -> HttpResponse:
    """Withdraws an open invitation."""
    invitation = get_object_or_404(live_invitations(member.account), pk=invitation_id)
    if request.method == "POST":
        if withdraw_invitation(invitation=invitation, actor=member.user):
            messages.success(
                request,
                _("The invitation of %(email)s was withdrawn.") % {"email": invitation.email},
            )
        return _back()
    return confirm(
        request,
        member,
        title=_("Withdraw an invitation"),
        question=_("Withdraw the invitation of %(email)s?") % {"email": invitation.email},
        facts=[_("The link in the email stops working.")],
        button=_("Withdraw"),
        danger=True,
        back=reverse("merchants:people"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER, protects=True)
def role(request: HttpRequest, member: Member, membership_id: int) -> HttpResponse:
    """Changes a member's role."""
    person = get_object_or_404(members_of(member.account), pk=membership_id)
    form = RoleForm(posted(request), initial={"role": person.role})
    if form.is_valid():
        return _try(
            request,
            lambda: change_role(
                membership=person, role=Role(form.cleaned_data["role"]), actor=member.user
            ),
            _("The role of %(email)s was changed.") % {"email": person.user.email},
        )
    return confirm(
        request,
        member,
        title=_("Change a role"),
        question=_("Choose a role for %(email)s.") % {"email": person.user.email},
        form=form,
        button=_("Change role"),
        back=reverse("merchants:people"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER, protects=True)
def remove(request: HttpRequest, member: Member, membership_id: int) -> HttpResponse:
    """Removes a member from the account."""
    person = get_object_or_404(members_of(member.account), pk=membership_id)
    if request.method == "POST":
        return _try(
            request,
            lambda: remove_member(membership=person, actor=member.user),
            _("%(email)s was removed.") % {"email": person.user.email},
        )
    return confirm(
        request,
        member,
        title=_("Remove a person"),
        question=_("Remove %(email)s from %(account)s?")
        % {"email": person.user.email, "account": member.account},
        facts=[
            _("They are signed out everywhere at once. API keys that they created keep working.")
        ],
        button=_("Remove"),
        danger=True,
        back=reverse("merchants:people"),
    )


def _try(request: HttpRequest, change: Callable[[], object], message: str) -> HttpResponse:
    try:
        change()
    except InputProblem as problem:
        messages.error(request, str(problem))
    else:
        messages.success(request, message)
    return _back()


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("merchants:people"))
