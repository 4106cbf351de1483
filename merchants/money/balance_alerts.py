"""Emails the owners once each time the balance falls below the level of their alert.

A sweep compares balances with levels, so no purchase has to. It misses a balance that falls and
rises again between two sweeps; by then there is nothing to warn about.
"""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from core.formats import amount_fact, text_fact
from core.json_output import money_text
from merchants.email.outbox import email_members, email_owners
from merchants.models import BalanceAlert, EmailKind
from wallets.models import Wallet

EMAILED_AT_ONCE = 1_000  # crossings of one sweep, about 15 s of a worker; the next follows in 30 s


@transaction.atomic
def set_balance_alert(*, account: Account, level: Decimal | None, actor: User) -> bool:
    """Sets the level of the balance alert in the account's currency; None removes the alert.

    Returns False if the level is unchanged. If the balance was already below the old level and is
    below the new one, the owners get no second email.
    """
    alerts = BalanceAlert.objects.select_for_update(of=("self",))
    before = alerts.filter(account=account).first()
    level_before = before.level if before else None
    if level_before == level:
        return False
    if level is None:
        BalanceAlert.objects.filter(account=account).delete()
    elif before is None:
        alert, created = alerts.get_or_create(account=account, defaults={"level": level})
        if not created:  # a concurrent request created it
            _change_level(alert, level)
    else:
        _change_level(before, level)
    note = "none" if level is None else f"{money_text(level)} {account.currency}"
    record_action(actor=actor, action=AuditAction.ALERT_CHANGED, on=account, note=note)
    email_members(
        account=account,
        change=gettext_noop("Balance alert changed"),
        actor=actor,
        facts={
            gettext_noop("Before"): _amount_or_none(level_before, account),
            gettext_noop("Now"): _amount_or_none(level, account),
        },
    )
    return True


def sweep_balance_alerts() -> dict[str, int]:
    """Emails the owners of balances that are newly below their level, at most EMAILED_AT_ONCE.

    Rearms the alerts whose balance is back at or above the level. Returns both counts.
    """
    armed = BalanceAlert.objects.filter(below=True, level__lte=_balance()).update(below=False)
    fallen = _fallen().order_by("pk").values_list("pk", flat=True)
    emailed = sum(_email_low_balance(pk) for pk in fallen[:EMAILED_AT_ONCE])
    return {"emailed": emailed, "armed": armed}


def _fallen() -> QuerySet[BalanceAlert]:
    return BalanceAlert.objects.filter(below=False, level__gt=_balance())


def _balance() -> Subquery:
    """The balance of the alert's wallet, as a subquery, so that the UPDATE itself checks it.

    Django would read a join in a SELECT before the UPDATE, and two sweeps could both find the
    balance below the level.
    """
    return Subquery(Wallet.objects.filter(pk=OuterRef("account_id")).values("balance"))


@transaction.atomic
def _email_low_balance(account_id: int) -> bool:
    """Records the crossing and stores the emails in one transaction.

    Of two concurrent sweeps, one does so and the other gets False.
    """
    if not _fallen().filter(pk=account_id).update(below=True, crossed_at=Now()):
        return False
    alert = BalanceAlert.objects.select_related("account__wallet").get(pk=account_id)
    facts: dict[str, Any] = {
        "account": alert.account.name,
        "balance": _amount_or_none(alert.account.wallet.balance, alert.account),
        "level": _amount_or_none(alert.level, alert.account),
    }
    email_owners(account=alert.account, kind=EmailKind.LOW_BALANCE, facts=facts)
    return True


def _change_level(alert: BalanceAlert, level: Decimal) -> None:
    balance = Wallet.objects.filter(pk=alert.pk).values_list("balance", flat=True).first()
    alert.level = level
    alert.below = alert.below and balance is not None and balance < level
    alert.save(update_fields=["level", "below"])


def _amount_or_none(amount: Decimal | None, account: Account) -> dict[str, Any]:
    none = text_fact(gettext_noop("none"))
    return none if amount is None else amount_fact(amount, account.currency)
