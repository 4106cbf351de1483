"""Stores emails in the transaction of the change they report.

merchants/email/sending.py sends them after the commit.
"""

from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from accounts.models import Account
from config.queue import enqueue
from merchants.models import Email, EmailKind, Membership, Role


def write_email(
    *, kind: EmailKind, to: str, facts: dict[str, Any] | None = None, about: int | None = None
) -> Email:
    """Stores an email in the caller's transaction. A task sends it after the commit.

    `facts` fill the template. They stay in the database, so they must hold no secret. `about` is
    the id that the email's secret link is made for: an invitation's or a user's.
    """
    email = Email.objects.create(kind=kind, to=to, facts=facts or {}, about=about)
    transaction.on_commit(partial(enqueue, "merchants.tasks.send_email", email.pk))
    return email


def email_owners(
    *, account: Account, change: str, actor: User | None = None, facts: dict[str, str] | None = None
) -> None:
    """Emails every active owner what was changed and by whom, with `facts` as `name: value` lines.

    Call it in the transaction of the change. `facts` must hold no secret: name a key by its prefix.
    """
    owners = Membership.objects.filter(account=account, role=Role.OWNER, user__is_active=True)
    by = str(actor) if actor else "the service"
    for email in owners.order_by("pk").values_list("user__email", flat=True):
        write_email(
            kind=EmailKind.CHANGE,
            to=email,
            facts={"account": account.name, "change": change, "by": by, "facts": facts or {}},
        )
