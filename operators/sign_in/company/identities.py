"""The links between staff and company accounts (operators/sign_in/company/ makes them)."""

from django.contrib.auth.models import User
from django.db import transaction

from audit.models import AuditAction
from audit.people import record_on_user
from core.inputs import InputProblem
from operators.sign_in.models import CompanyIdentity
from operators.sign_in.signals import company_account_unlinked


@transaction.atomic
def unlink_company_account(*, username: str) -> bool:
    """Deletes the link, so that the company account no longer signs in as this person.

    Sessions that began with the company account end with the link (CompanyBackend). A receiver of
    company_account_unlinked unlinks the Telegram account: nothing else would end its rights.

    Returns whether there was a link. Raises InputProblem if there is no such user.
    """
    user = User.objects.filter(username=username).first()
    if user is None:
        raise InputProblem(f"There is no user {username!r}.")
    deleted, _ = CompanyIdentity.objects.filter(user=user).delete()
    if deleted:
        record_on_user(user, AuditAction.COMPANY_UNLINKED, actor=None)
        company_account_unlinked.send(sender=CompanyIdentity, user=user)
    return bool(deleted)
