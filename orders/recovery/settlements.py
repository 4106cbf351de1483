"""Settling the purchases that a restore of the database lost (docs/operate/backup.md).

The merchant may have the codes, and the debit is gone. People decide about each purchase, once:
debit its price after all, or leave it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import Account
from audit.actor import current_actor
from audit.models import AuditAction
from audit.services import record_action
from core.api.errors import OrderRefused
from core.inputs import InputProblem
from core.json_output import money_text
from orders.models import LostPurchase, Settlement
from wallets.models import LedgerEntry
from wallets.services import AlreadyBooked, BadBooking, adjust

NOTICE = """\
{account}: purchases that we lost when we restored our database

These purchases succeeded and you received a response to each. Then we restored our database to an
earlier moment, which lost them and their debits:

{lines}

What you received is valid: keep it, and do not buy it again. GET /orders/REFERENCE returns
order_not_found for these orders, and a retry with the same idempotency key returns
request_abandoned and buys nothing. We will agree with you whether we debit them again; such a debit
is an adjustment in your statement."""


def open_purchases() -> QuerySet[LostPurchase]:
    """The lost purchases that nobody has settled, oldest first."""
    return LostPurchase.objects.filter(settlement=None).order_by("pk")


def settle_lost_purchase(lost: LostPurchase, *, debits: bool, note: str, actor: str) -> Settlement:
    """Debits the price of a lost purchase from its account, or records that it is not debited.

    The ledger entry has the booking reference `lost:REFERENCE`. An adjustment of the same amount
    that somebody booked under it becomes the debit. The merchant reads `note`.

    Raises InputProblem, and changes nothing, if it is settled already, if it is in another currency
    than the account, or if the debit cannot be booked, for example because the balance is too low.
    """
    try:
        with transaction.atomic():
            settlement = Settlement.objects.create(
                lost_purchase=lost,
                debit=_debit(lost, note=note, actor=actor) if debits else None,
                note=note,
                settled_by=actor,
            )
            record_action(
                actor=current_actor() or actor,
                action=AuditAction.ADDED,
                on=settlement,
                reference=lost.reference,
                note=note,
            )
    except IntegrityError:
        raise InputProblem(
            _("%(reference)s is settled already. Nothing was changed.")
            % {"reference": lost.reference}
        ) from None
    return settlement


def settle_lost_purchases(
    purchases: Iterable[LostPurchase], *, debits: bool, note: str, actor: str
) -> dict[str, Any]:
    """Settles each purchase by itself. Returns the number of settled ones, and by reference why
    the others were not."""
    settled, problems = 0, {}
    for lost in purchases:
        try:
            settle_lost_purchase(lost, debits=debits, note=note, actor=actor)
            settled += 1
        except InputProblem as problem:
            problems[lost.reference] = str(problem)
    return {"settled": settled, "not_settled": problems}


def show_lost_purchases() -> Iterator[dict[str, Any]]:
    """Every lost purchase, oldest first, as the command prints it."""
    rows = LostPurchase.objects.select_related("client__account", "settlement").order_by("pk")
    for lost in rows.iterator():
        settlement: Settlement | None = getattr(lost, "settlement", None)
        yield {
            "reference": lost.reference,
            "account_id": lost.client.account_id,
            "account": str(lost.client.account or ""),
            "sold_at": lost.sold_at,
            "amount": lost.total_price,
            "currency": lost.currency,
            "hold": lost.hold_id,
            "state": state_of(settlement),
            "note": settlement.note if settlement else "",
            "settled_by": settlement.settled_by if settlement else "",
        }


def state_of(settlement: Settlement | None) -> str:
    """`open`, `debited` or `not debited`."""
    if settlement is None:
        return "open"
    return "debited" if settlement.debit_id else "not debited"


def write_notice(account: Account) -> str:
    """A text for the merchant about the open lost purchases of its account; empty without one."""
    lines = [
        f"{lost.reference}: {lost.sold_at:%Y-%m-%d %H:%M:%S} UTC, {money_text(lost.total_price)}"
        f" {lost.currency}"
        for lost in open_purchases().filter(client__account=account)
    ]
    return NOTICE.format(account=account, lines="\n".join(lines)) if lines else ""


def _debit(lost: LostPurchase, *, note: str, actor: str) -> LedgerEntry:
    account = lost.client.account
    if account is None:
        raise InputProblem(
            _("The client of %(reference)s has no account.") % {"reference": lost.reference}
        )
    if account.currency != lost.currency:
        raise InputProblem(
            _("%(reference)s is in %(currency)s, and the account is not.")
            % {"reference": lost.reference, "currency": lost.currency}
        )
    try:
        return adjust(
            account=account,
            amount=-lost.total_price,
            actor=actor,
            booking_reference=f"lost:{lost.reference}",
            note=note,
        )
    except AlreadyBooked as booked:
        return booked.entry
    except BadBooking as error:
        raise InputProblem(
            _("%(reference)s was not debited: %(problem)s.")
            % {"reference": lost.reference, "problem": error}
        ) from None
    except OrderRefused as refused:
        raise InputProblem(
            _("%(reference)s was not debited: %(problem)s")
            % {"reference": lost.reference, "problem": _(refused.message)}
        ) from None
