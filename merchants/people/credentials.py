"""Changes a member's password and second factor, with an audit entry and an email to the owners."""

from django.contrib.auth.models import User
from django.db import transaction

from accounts.second_factor import confirm_factor, forget_second_factors
from audit.models import AuditAction
from audit.services import record_action
from merchants.email.outbox import email_owners
from merchants.models import MemberSession, Membership
from merchants.people.sessions import end_member_sessions


@transaction.atomic
def change_password(*, user: User, password: str) -> None:
    """Sets the member's password and ends all their sessions."""
    user.set_password(password)
    user.save(update_fields=["password"])
    # The new password invalidates the sessions. Deleting them removes them from the account page.
    end_member_sessions(MemberSession.objects.filter(user=user))
    _record_and_email(user, "Password changed")


@transaction.atomic
def turn_factor_on(*, user: User, code: str) -> list[str] | None:
    """Confirms the second factor. Returns its backup codes, to be shown once; None if the code is
    wrong."""
    codes = confirm_factor(user=user, code=code)
    if codes is not None:
        _record_and_email(user, "Second factor turned on")
    return codes


@transaction.atomic
def turn_factor_off(*, user: User) -> None:
    """Deletes the second factor and its backup codes."""
    forget_second_factors(user=user, actor=user)
    _record_and_email(user, "Second factor turned off")


@transaction.atomic
def reset_factor(*, user: User, actor: User | None) -> int:
    """Deletes the second factor of a member or of staff who lost it.

    The owners of a member's account receive an email. Returns how many factors there were.
    """
    forgotten = forget_second_factors(user=user, actor=actor)
    membership = Membership.objects.select_related("account").filter(user=user).first()
    if forgotten and membership is not None:
        email_owners(
            account=membership.account,
            change="Second factor removed",
            actor=actor,
            facts={"Person": user.email},
        )
    return forgotten


def _record_and_email(user: User, change: str) -> None:
    membership = user.membership
    record_action(
        actor=user,
        action=AuditAction.MEMBER_CHANGED,
        on=membership,
        reference=user.email,
        note=change,
    )
    email_owners(account=membership.account, change=change, actor=user)
