"""Records in the audit trail that a name was locked out after too many wrong passwords."""

from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.models import User

from audit.models import AuditAction
from audit.people import record_on_user


def connect() -> None:
    """Connects the receiver. Called once, when the app is ready."""
    user_locked_out.connect(_record, dispatch_uid="accounts.record_lockout")


def _record(sender: object, username: str, **kwargs: Any) -> None:
    user = User.objects.filter(username=username).first()
    if user is not None:  # otherwise anybody could fill the audit trail with invented names
        record_on_user(user, AuditAction.SIGN_IN_REFUSED, actor=None)
