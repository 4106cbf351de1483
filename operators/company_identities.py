"""The links between staff and company accounts (operators/company_sign_in/ makes them)."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from audit.models import AuditAction
from audit.people import record_on_user
from config.inputs import InputProblem
from operators.models import CompanyIdentity


@transaction.atomic
def unlink_company_account(*, username: str) -> bool:
    """Deletes the link, so that the company account no longer signs in as this person.

    Returns whether there was one. Raises InputProblem if there is no such user.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputProblem(f"There is no user {username!r}.")
    deleted, _ = CompanyIdentity.objects.filter(user=user).delete()
    if deleted:
        record_on_user(user, AuditAction.COMPANY_UNLINKED, actor=None)
    return bool(deleted)


def company_account_is_current(user: User) -> bool:
    """Whether the company vouched for this person within the longest time of a session.

    True for people without a company account. Telegram asks this, because it has no sessions:
    otherwise somebody who left the company could go on there.
    """
    identity = CompanyIdentity.objects.filter(user=user).first()
    if identity is None:
        return True
    hours = timedelta(hours=settings.STAFF_SESSION_HOURS)
    return identity.signed_in_at is not None and identity.signed_in_at > timezone.now() - hours
