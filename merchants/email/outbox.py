"""Stores emails in the transaction of the change they report.

merchants/email/sending.py sends them after the commit.
"""

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.models import Account
from core.formats import text_fact
from core.queue import enqueue
from merchants.models import Email, EmailKind, Membership, Role

BLOCKED_HEAR_FOR = timedelta(days=30)


def write_email(
    *, kind: EmailKind, to: str, facts: dict[str, Any] | None = None, about: int | None = None
) -> Email:
    """Stores an email in the caller's transaction. A task sends it after the commit.

    `facts` fill the template. They stay in the database, so they must hold no secret. Texts are
    shown as they are; `core.formats` has facts that are written in the reader's language. `about`
    is the id that the email's secret link is made for: an invitation's or a user's.
    """
    email = Email.objects.create(kind=kind, to=to, facts=facts or {}, about=about)
    transaction.on_commit(partial(enqueue, "merchants.tasks.send_email", email.pk))
    return email


def in_order(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    """Facts whose order the database keeps. It sorts the names of a JSON object by their length."""
    return list(facts.items())


def has_received_limit(*, kind: EmailKind, to: str, limit: int, within: timedelta) -> bool:
    """Whether this address was sent `limit` emails of this kind, or more, in this time.

    Call it in the transaction that writes the next one, after `lock_address`.
    """
    recent = Email.objects.filter(kind=kind, to=to, created_at__gt=timezone.now() - within)
    return recent.count() >= limit


def lock_address(email: str) -> None:
    """Makes other transactions that write to this address wait until this one has ended. Without
    it, requests at the same time exceed the limit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"email:{email}"])


def email_owners(*, account: Account, kind: EmailKind, facts: dict[str, Any]) -> None:
    """Emails the owners of the account who are not blocked. Call it in the transaction of what it
    is about; `facts` must hold no secret."""
    owners = Membership.objects.filter(account=account, role=Role.OWNER, user__is_active=True)
    for email in owners.order_by("pk").values_list("user__email", flat=True):
        write_email(kind=kind, to=email, facts=facts)


def email_members(
    *, account: Account, change: str, actor: User | None = None, facts: dict[str, Any] | None = None
) -> None:
    """Emails every member what was changed and by whom, with `facts` as `name: value` lines.

    People whom staff blocked in the last 30 days receive it, too: a dishonest member of staff could
    otherwise block the owner first. Call it in the transaction of the change. `facts` must hold no
    secret: name a key by its prefix.
    """
    blocked_lately = Q(blocked_at__gt=timezone.now() - BLOCKED_HEAR_FOR)
    members = Membership.objects.filter(
        Q(user__is_active=True) | blocked_lately, account=account
    ).exclude(user__email="")
    by: Any = actor.get_username() if actor else text_fact(gettext_noop("the service"))
    if actor is not None and actor.is_staff:
        by = text_fact(gettext_noop("%(name)s (our staff)"), name=by)
    for email in members.order_by("pk").values_list("user__email", flat=True):
        write_email(
            kind=EmailKind.CHANGE,
            to=email,
            facts={
                "account": account.name,
                "change": change,
                "by": by,
                "facts": in_order(facts or {}),
            },
        )
