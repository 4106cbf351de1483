"""Letters are due in the database with what they tell of; merchants/email/sending.py sends them."""

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
    """Makes a letter due, in the transaction of the caller; it goes out after the commit.

    `facts` are for the template and must hold no secret: they stay in the database.
    """
    email = Email.objects.create(kind=kind, to=to, facts=facts or {}, about=about)
    transaction.on_commit(partial(enqueue, "merchants.tasks.send_email", email.pk))
    return email


def tell_owners(
    *, account: Account, change: str, actor: User | None = None, facts: dict[str, str] | None = None
) -> None:
    """Writes to every owner what was changed, by whom, and more facts as `name: value` lines.

    Call it in the transaction of the change. No secret: a key is named by its prefix.
    """
    owners = Membership.objects.filter(account=account, role=Role.OWNER, user__is_active=True)
    by = str(actor) if actor else "the service"
    for email in owners.order_by("pk").values_list("user__email", flat=True):
        write_email(
            kind=EmailKind.CHANGE,
            to=email,
            facts={"account": account.name, "change": change, "by": by, "facts": facts or {}},
        )
