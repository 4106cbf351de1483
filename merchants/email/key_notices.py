"""Emails the owners about each change of a key by a member, staff or a command."""

from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext_noop

from accounts.models import ApiClient
from accounts.signals import key_changed
from merchants.email.outbox import email_owners


def connect() -> None:
    """Connects the receiver. Called once, when the app is ready."""
    key_changed.connect(_email, dispatch_uid="merchants.email_about_key")


def _email(
    sender: object,
    client: ApiClient,
    actor: User | None,
    change: str,
    facts: dict[str, str],
    **kwargs: Any,
) -> None:
    if client.account is not None:
        facts = {gettext_noop("Client"): client.name, **facts}
        email_owners(account=client.account, change=change, actor=actor, facts=facts)
