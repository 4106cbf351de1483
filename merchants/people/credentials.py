"""Changes a member's password and second factor, with an audit entry and an email to the owners."""

from django.contrib.auth.models import User
from django.db import transaction
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.second_factor import confirm_device, forget_second_factors
from audit.models import AuditAction
from audit.services import record_action
from merchants.email.outbox import email_owners
from merchants.models import MemberSession
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
def turn_factor_on(*, device: TOTPDevice) -> list[str]:
    """Confirms the second factor. Returns its backup codes, to be shown once."""
    codes = confirm_device(device)
    _record_and_email(device.user, "Second factor turned on")
    return codes


@transaction.atomic
def turn_factor_off(*, user: User) -> None:
    """Deletes the second factor and its backup codes."""
    forget_second_factors(user=user)
    _record_and_email(user, "Second factor turned off")


def _record_and_email(user: User, change: str) -> None:
    membership = user.membership
    record_action(
        actor=user,
        action=AuditAction.MEMBER_CHANGED,
        on=membership,
        reference=user.email[:64],
        note=change,
    )
    email_owners(account=membership.account, change=change, actor=user)
