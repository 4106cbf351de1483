"""Emails the members of an account about each change of a key, by a member, staff or a command,
and about each change of a client or of the account by staff or a command."""

from typing import Any

from django.contrib.auth.models import User

from accounts.models import Account
from accounts.signals import access_changed
from merchants.email.outbox import email_members


def connect() -> None:
    """Connects the receiver. Called once, when the app is ready."""
    access_changed.connect(_email, dispatch_uid="merchants.email_about_access")


def _email(
    sender: object,
    account: Account,
    actor: User | None,
    change: str,
    facts: dict[str, Any],
    **kwargs: Any,
) -> None:
    email_members(account=account, change=change, actor=actor, facts=facts)
