"""Forgotten passwords: a link by email that sets a new one, once and for an hour."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from merchants.email.outbox import write_email
from merchants.email.secret_links import read_reset
from merchants.models import Email, EmailKind

MAX_LETTERS_PER_HOUR = 3


def ask_for_reset(*, email: str) -> None:
    """Writes to the member with this address, if there is one. The caller never learns which."""
    with transaction.atomic():
        # Requests for one person follow one another, or each would find the letters uncounted.
        user = _members().select_for_update(of=("self",)).filter(username=email.lower()).first()
        if user is None:
            return
        if reset_emails_lately(user).count() < MAX_LETTERS_PER_HOUR:
            write_email(kind=EmailKind.PASSWORD_RESET, to=user.email, about=user.pk)


def reset_emails_lately(user: User) -> QuerySet[Email]:
    """The letters that this person's password was asked for with in the last hour."""
    return Email.objects.filter(
        kind=EmailKind.PASSWORD_RESET,
        about=user.pk,
        created_at__gt=timezone.now() - timedelta(hours=1),
    )


def find_reset(token: str) -> User | None:
    """The member that this link is for; None for anything else."""
    return read_reset(token, _members())


def _members() -> QuerySet[User]:
    return User.objects.filter(is_active=True, is_staff=False, membership__isnull=False)
