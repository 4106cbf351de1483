"""The links between staff and company accounts (operators/company_sign_in/ makes them)."""

from django.contrib.auth.models import User
from django.db import transaction

from audit.models import AuditAction
from audit.people import record_on_user
from core.inputs import InputProblem
from operators.models import CompanyIdentity
from operators.telegram.staff_links import unlink_user


@transaction.atomic
def unlink_company_account(*, username: str) -> bool:
    """Deletes the link, so that the company account no longer signs in as this person.

    Sessions that began with the company account end with the link (CompanyBackend). Their Telegram
    account is unlinked, too: nothing else would end its rights.

    Returns whether there was a link. Raises InputProblem if there is no such user.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputProblem(f"There is no user {username!r}.")
    deleted, _ = CompanyIdentity.objects.filter(user=user).delete()
    if deleted:
        record_on_user(user, AuditAction.COMPANY_UNLINKED, actor=None)
        unlink_user(user=user, actor=None)
    return bool(deleted)
