"""Password resets: an email with a link that sets a new password, once, within an hour."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from merchants.email.outbox import write_email
from merchants.email.secret_links import read_reset
from merchants.models import Email, EmailKind

MAX_RESETS_PER_HOUR = 3


def ask_for_reset(*, email: str) -> None:
    """Emails a reset link to the member with this address, at most three per hour.

    The caller does not learn whether there is such a member.
    """
    with transaction.atomic():
        # The lock serialises requests for one person. Without it, concurrent ones exceed the limit.
        user = _members().select_for_update(of=("self",)).filter(username=email.lower()).first()
        if user is None:
            return
        if recent_reset_emails(user).count() < MAX_RESETS_PER_HOUR:
            write_email(kind=EmailKind.PASSWORD_RESET, to=user.email, about=user.pk)


def recent_reset_emails(user: User) -> QuerySet[Email]:
    """The reset emails of the last hour to this person."""
    return Email.objects.filter(
        kind=EmailKind.PASSWORD_RESET,
        about=user.pk,
        created_at__gt=timezone.now() - timedelta(hours=1),
    )


def find_reset(token: str) -> User | None:
    """The member whom this token belongs to; None if it is invalid or expired."""
    return read_reset(token, _members())


def _members() -> QuerySet[User]:
    return User.objects.filter(is_active=True, is_staff=False, membership__isnull=False)
