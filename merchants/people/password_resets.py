"""Password resets: an email with a link that sets a new password, once, within an hour."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from merchants.email import outbox
from merchants.email.secret_links import read_reset
from merchants.models import Email, EmailKind

MAX_RESETS_PER_HOUR = 3


@transaction.atomic
def ask_for_reset(*, email: str) -> None:
    """Emails a reset link to the member with this address, at most three per hour.

    The caller does not learn whether there is such a member, not even from the time it takes: a row
    is written and a task is queued for every address. The task sends nothing to a stranger.
    """
    email = email.lower()
    outbox.lock_address(email)
    if outbox.has_received_limit(
        kind=EmailKind.PASSWORD_RESET,
        to=email,
        limit=MAX_RESETS_PER_HOUR,
        within=timedelta(hours=1),
    ):
        return
    member = _members().filter(username=email).first()
    outbox.write_email(kind=EmailKind.PASSWORD_RESET, to=email, about=member.pk if member else None)


def forget_strangers() -> int:
    """Deletes the rows of strangers who asked a day ago or earlier. Returns how many."""
    emails = Email.objects.filter(
        kind=EmailKind.PASSWORD_RESET,
        about=None,
        created_at__lt=timezone.now() - timedelta(days=1),
    )
    return emails.delete()[0]


def find_reset(token: str) -> User | None:
    """The member whom this token belongs to; None if it is invalid or expired."""
    return read_reset(token, _members())


def _members() -> QuerySet[User]:
    return User.objects.filter(is_active=True, is_staff=False, membership__isnull=False)
