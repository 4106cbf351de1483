"""The letter that a balance is low: one for each time that it falls below the level.

A sweep compares balances with levels, so that no purchase has to. A balance that falls and rises
again between two sweeps is not noticed: by then there is nothing to warn of.
"""

from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from config.api.json import money_text
from merchants.email.outbox import tell_owners, write_email
from merchants.models import BalanceAlert, EmailKind, Membership, Role
from wallets.models import Wallet

# Of the alert's own wallet. As a subquery, so that an UPDATE can name it in its own condition; a
# join would be looked up beforehand, and of two sweeps both could believe to be the first.
BALANCE = Subquery(Wallet.objects.filter(pk=OuterRef("account_id")).values("balance"))


@transaction.atomic
def set_balance_alert(*, account: Account, level: Decimal | None, actor: User) -> bool:
    """Sets the level below which the owners are written to; None for never. False where it is
    this already.

    Where the balance is below the old level and the new one, they know: no other letter is due.
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
        if not created:  # somebody else set one at this moment
            _change_level(alert, level)
    else:
        _change_level(before, level)
    told = _amount(level, account)
    record_action(actor=actor, action=AuditAction.ALERT_CHANGED, on=account, note=told)
    tell_owners(
        account=account,
        change="The balance alert was changed",
        actor=actor,
        facts={"Before": _amount(level_before, account), "Now": told},
    )
    return True


def sweep_balance_alerts() -> dict[str, int]:
    """Writes for each balance that fell below its level since, and arms again those that rose."""
    armed = BalanceAlert.objects.filter(below=True, level__lte=BALANCE).update(below=False)
    fallen = _fallen().order_by("pk").values_list("pk", flat=True)
    return {"told": sum(_tell(pk) for pk in fallen), "armed": armed}


def _fallen() -> QuerySet[BalanceAlert]:
    return BalanceAlert.objects.filter(below=False, level__gt=BALANCE)


@transaction.atomic
def _tell(account_id: int) -> bool:
    """Notes the crossing and writes the letters, together. Of two at once one does."""
    if not _fallen().filter(pk=account_id).update(below=True, crossed_at=Now()):
        return False
    alert = BalanceAlert.objects.select_related("account__wallet").get(pk=account_id)
    facts: dict[str, Any] = {
        "account": alert.account.name,
        "balance": _amount(alert.account.wallet.balance, alert.account),
        "level": _amount(alert.level, alert.account),
    }
    owners = Membership.objects.filter(
        account=alert.account, role=Role.OWNER, user__is_active=True
    ).order_by("pk")
    for email in owners.values_list("user__email", flat=True):
        write_email(kind=EmailKind.LOW_BALANCE, to=email, facts=facts)
    return True


def _change_level(alert: BalanceAlert, level: Decimal) -> None:
    balance = Wallet.objects.filter(pk=alert.pk).values_list("balance", flat=True).first()
    alert.level = level
    alert.below = alert.below and balance is not None and balance < level
    alert.save(update_fields=["level", "below"])


def _amount(amount: Decimal | None, account: Account) -> str:
    return "none" if amount is None else f"{money_text(amount)} {account.currency}"
