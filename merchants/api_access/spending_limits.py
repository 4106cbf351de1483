"""Spending limits of clients: owners set them, and receive an email when one refuses a purchase."""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext_noop

from accounts.models import Account, ApiClient
from audit.models import AuditAction
from audit.services import record_action
from core.formats import amount_fact, text_fact
from core.json_output import money_text
from merchants.email.outbox import email_members, email_owners, in_order
from merchants.models import EmailKind
from orders.spending_limits import (
    Limits,
    set_spending_limits,
    spending_of,
    unreported_refusals,
)


@transaction.atomic(durable=True)
def change_spending_limits(*, client: ApiClient, limits: Limits, actor: User) -> bool:
    """Sets the limits of a client of an account, with the audit entry and the emails to the owners.

    Returns False if they are unchanged.
    """
    before = set_spending_limits(client=client, limits=limits)
    if before is None:
        return False
    assert client.account is not None  # noqa: S101  members reach only clients of their account
    account = client.account
    record_action(
        actor=actor,
        action=AuditAction.SPENDING_LIMIT_CHANGED,
        on=client,
        changes={
            "per_day": (_text(before.per_day, account), _text(limits.per_day, account)),
            "per_month": (_text(before.per_month, account), _text(limits.per_month, account)),
        },
    )
    email_members(
        account=account,
        change=gettext_noop("Spending limit changed"),
        actor=actor,
        facts={
            gettext_noop("Client"): client.name,
            gettext_noop("In a day"): _limit_fact(limits.per_day, account),
            gettext_noop("In a month"): _limit_fact(limits.per_month, account),
        },
    )
    return True


def sweep_spending_limits() -> int:
    """Emails the owners of each client whose limit refused a purchase, once a day; how many."""
    clients = unreported_refusals().order_by("pk").values_list("pk", flat=True)
    return sum(_report(pk) for pk in clients)


@transaction.atomic
def _report(client_id: int) -> bool:
    """Of two concurrent sweeps, one stores the emails and the other gets False."""
    if not unreported_refusals().filter(pk=client_id).update(reported_on=F("refused_on")):
        return False
    client = ApiClient.objects.select_related("account").get(pk=client_id)
    spending = spending_of(client)
    if client.account is None or spending is None:
        return False
    facts = {
        gettext_noop("Client"): client.name,
        gettext_noop("Spent today"): _spending_fact(
            spending.today, spending.limits.per_day, client.account
        ),
        gettext_noop("Spent this month"): _spending_fact(
            spending.this_month, spending.limits.per_month, client.account
        ),
        gettext_noop("What happens"): gettext_noop(
            "Purchases beyond the limit are refused as insufficient_balance"
        ),
    }
    email_owners(
        account=client.account,
        kind=EmailKind.CHANGE,
        facts={
            "account": client.account.name,
            "change": gettext_noop("Spending limit reached"),
            "by": client.name,
            "facts": in_order(facts),
        },
    )
    return True


def _text(amount: Decimal | None, account: Account) -> str:
    return "no limit" if amount is None else f"{money_text(amount)} {account.currency}"


def _limit_fact(amount: Decimal | None, account: Account) -> dict[str, Any]:
    no_limit = text_fact(gettext_noop("no limit"))
    return no_limit if amount is None else amount_fact(amount, account.currency)


def _spending_fact(amount: Decimal, limit: Decimal | None, account: Account) -> dict[str, Any]:
    return text_fact(
        gettext_noop("%(spent)s of %(limit)s"),
        spent=amount_fact(amount, account.currency),
        limit=_limit_fact(limit, account),
    )
