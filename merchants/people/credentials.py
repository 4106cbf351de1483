"""Changes a member's password and second factor, with an audit entry and an email to the owners."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext_noop

from accounts.sign_in.second_factor import (
    check_code,
    confirm_factor,
    forget_second_factors,
    needs_factor,
    replace_backup_codes,
)
from audit.models import AuditAction
from audit.services import record_action
from merchants.email.outbox import email_members
from merchants.models import MemberSession, Membership, Role
from merchants.people.sessions import end_member_sessions


@transaction.atomic
def change_password(*, user: User, password: str) -> None:
    """Sets the member's password and ends all their sessions."""
    user.set_password(password)
    user.save(update_fields=["password"])
    # The new password invalidates the sessions. Deleting them removes them from the account page.
    end_member_sessions(MemberSession.objects.filter(user=user))
    _record_and_email(user, gettext_noop("Password changed"))


@transaction.atomic
def turn_factor_on(*, user: User, code: str) -> list[str] | None:
    """Confirms the second factor. Returns its backup codes, to be shown once; None if the code is
    wrong."""
    codes = confirm_factor(user=user, code=code)
    if codes is not None:
        _record_and_email(user, gettext_noop("Second factor turned on"))
    return codes


@transaction.atomic
def make_backup_codes(*, user: User, code: str) -> list[str] | None:
    """Replaces the backup codes of the second factor. Returns the new ones, to be shown once; None
    if the code is wrong."""
    factor = check_code(user=user, code=code)
    if factor is None:
        return None
    _record_and_email(user, gettext_noop("Backup codes replaced"))
    return replace_backup_codes(factor)


@transaction.atomic
def turn_factor_off(*, user: User) -> None:
    """Deletes the second factor and its backup codes."""
    forget_second_factors(user=user, actor=user)
    _record_and_email(user, gettext_noop("Second factor turned off"))


@transaction.atomic
def reset_factor(*, user: User, actor: User | None) -> int:
    """Deletes the second factor of a member or of staff who lost it.

    The owners of a member's account receive an email. Returns how many factors there were.
    """
    forgotten = forget_second_factors(user=user, actor=actor)
    membership = Membership.objects.select_related("account").filter(user=user).first()
    if forgotten and membership is not None:
        email_members(
            account=membership.account,
            change=gettext_noop("Second factor removed"),
            actor=actor,
            facts={gettext_noop("Person"): user.email},
        )
    return forgotten


def reset_needs_two(user: User) -> bool:
    """Whether two members of staff remove this second factor. Money could follow: it is of staff
    who can do more than look, or of members who issue keys."""
    membership = Membership.objects.filter(user=user).first()
    if membership is not None:
        return Role(membership.role).includes(Role.DEVELOPER)
    return needs_factor(user)


def tell_of_request(*, user: User, actor: User) -> None:
    """Emails the members of a person's account that staff asked to remove the second factor."""
    change = gettext_noop("Removal of a second factor requested")
    membership = Membership.objects.select_related("account").filter(user=user).first()
    if membership is not None:
        facts = {gettext_noop("Person"): user.email}
        email_members(account=membership.account, change=change, actor=actor, facts=facts)


def _record_and_email(user: User, change: str) -> None:
    membership = user.membership
    record_action(
        actor=user,
        action=AuditAction.MEMBER_CHANGED,
        on=membership,
        reference=user.email,
        note=change,
    )
    email_members(account=membership.account, change=change, actor=user)
