"""Records in the audit trail that a name was locked out after too many wrong passwords."""

from datetime import timedelta
from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from audit.people import record_on_user

APART = timedelta(minutes=15)  # between two entries about one name


def connect() -> None:
    """Connects the receiver. Called once, when the app is ready."""
    user_locked_out.connect(record_lockout, dispatch_uid="accounts.record_lockout")


def record_lockout(sender: object, request: HttpRequest, username: str, **kwargs: Any) -> None:
    """Adds an entry if the name exists, and if the last one is old enough.

    Otherwise a stranger could fill the audit trail, with invented names or with more guesses. Axes
    also reports a sign-in whose password was not checked (`PasswordBackend`), which is no lockout.
    """
    if hasattr(request, "sign_in_wait"):
        return
    user = User.objects.filter(username=username).first()
    if user is None:
        return
    lately = AuditEntry.objects.filter(
        object_type=user._meta.label_lower,
        object_id=str(user.pk),
        action=AuditAction.SIGN_IN_REFUSED,
        created_at__gt=timezone.now() - APART,
    )
    if not lately.exists():
        record_on_user(
            user, AuditAction.SIGN_IN_REFUSED, actor=None, note="After too many wrong passwords"
        )
