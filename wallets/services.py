"""Booking ledger entries: deposits, payouts, adjustments, refunds and credits.

The debit of a purchase is booked in SQL (wallets/sql/debit.sql). Money moves in no other way.

Every entry booked here except a refund has a `booking_reference`, which the ledger accepts once,
compared without case, spaces and punctuation. A caller that repeats a booking gets AlreadyBooked
with the first entry. `actor` is who books:
`admin:anna`, `shell:anna`, or `system` for a refund. Every booking except a refund writes its audit
entry in its transaction.
"""

from decimal import Decimal

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.actor import current_actor
from audit.models import AuditAction
from audit.services import record_action
from core.api.errors import OrderRefused, order_refused
from core.database.columns import (
    ACTOR_LENGTH,
    BOOKING_REFERENCE_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    NOTE_LENGTH,
)
from core.database.functions import refusals
from core.formats import local_amount
from core.inputs import InputProblem, clean_text
from core.json_output import money_text
from core.texts import lazy
from wallets.models import COUNTERPARTS, EntryKind, LedgerEntry, Wallet
from wallets.selectors import find_booking, reference_of

# The action of a booking's audit entry, by the kind of its ledger entry.
BOOKED = {
    EntryKind.DEPOSIT: AuditAction.DEPOSIT_BOOKED,
    EntryKind.PAYOUT: AuditAction.PAYOUT_BOOKED,
    EntryKind.ADJUSTMENT: AuditAction.ADJUSTMENT_BOOKED,
    EntryKind.CREDIT: AuditAction.CREDIT_BOOKED,
}
BOOKING_ACTIONS = frozenset({*BOOKED.values(), AuditAction.BOOKING_REVERSED})
# What the ledger says about a refund, credit or reversal that it refuses: wallets/sql/paid_back.sql
# and wallets/sql/reversals.sql.
REFUSED = {
    "more_than_paid": lazy(
        "refunds, credits and replacements of this order would be more than it cost"
    ),
    "not_paid_by_wallet": lazy("this wallet did not pay for this order"),
    "not_a_reversal": lazy("references that begin like this are for reversals"),
    "not_an_outcome": lazy("references like this are for the outcomes of cases"),
}


class BadBooking(ValueError):
    """The entry cannot be booked. The message says why, as the end of a sentence."""


class AlreadyBooked(Exception):
    """The same booking is in the ledger already: `entry`."""

    def __init__(self, entry: LedgerEntry) -> None:
        super().__init__(entry.pk)
        self.entry = entry


def open_wallet(*, account: Account) -> Wallet:
    """Gives the account an empty wallet. Raises IntegrityError if it already has one."""
    return Wallet.objects.create(account=account)


def deposit(
    *,
    account: Account,
    amount: Decimal,
    actor: str,
    booking_reference: str,
    note: str = "",
    reason: str | None = None,
) -> LedgerEntry:
    """Books what the merchant paid in, in units of the account's currency. The merchant reads
    `reason`, and only staff read `note`.

    Raises AlreadyBooked, BadBooking (also if the reference belongs to another booking), or
    OrderRefused with `client_without_wallet`.
    """
    if amount <= 0:
        raise BadBooking(_("a deposit must be more than zero"))
    entry = LedgerEntry(
        wallet_id=account.pk,
        kind=EntryKind.DEPOSIT,
        amount=amount,
        note=note,
        reason=reason,
    )
    return _book(entry, actor=actor, booking_reference=booking_reference)


def pay_out(
    *,
    account: Account,
    amount: Decimal,
    actor: str,
    booking_reference: str,
    note: str = "",
    reason: str | None = None,
) -> LedgerEntry:
    """Books what was paid out to the merchant. `amount` is positive; the wallet loses it.

    Raises what `deposit` raises, and OrderRefused with `insufficient_balance`.
    """
    if amount <= 0:
        raise BadBooking(_("a payout must be more than zero"))
    entry = LedgerEntry(
        wallet_id=account.pk,
        kind=EntryKind.PAYOUT,
        amount=-amount,
        note=note,
        reason=reason,
    )
    return _book(entry, actor=actor, booking_reference=booking_reference)


def adjust(
    *,
    account: Account,
    amount: Decimal,
    actor: str,
    booking_reference: str,
    note: str,
    reason: str | None = None,
) -> LedgerEntry:
    """Corrects the balance by a positive or negative amount that concerns no order.

    Raises what `deposit` raises, and OrderRefused with `insufficient_balance` if the balance would
    fall below zero.
    """
    if amount == 0:
        raise BadBooking(_("an adjustment must not be zero"))
    entry = LedgerEntry(
        wallet_id=account.pk,
        kind=EntryKind.ADJUSTMENT,
        amount=amount,
        note=note,
        reason=reason,
    )
    return _book(entry, actor=actor, booking_reference=booking_reference)


def credit(
    *, order_reference: str, amount: Decimal, actor: str, booking_reference: str, note: str
) -> LedgerEntry:
    """Pays back a part or all of what an order cost, to the wallet that paid for it.

    The merchant reads `note`. A top-up must be credited through topups/fulfilment/refunds.py, which
    also marks it as refunded. Raises AlreadyBooked, or BadBooking, also if refunds and credits of
    the order would be more than it cost.
    """
    if amount <= 0:
        raise BadBooking(_("a credit must be more than zero"))
    debit = LedgerEntry.objects.filter(order_reference=order_reference, kind=EntryKind.PURCHASE)
    wallet = debit.values_list("wallet", flat=True).first()
    if wallet is None:
        raise BadBooking(_("there is no order with this reference"))
    entry = LedgerEntry(
        wallet_id=wallet,
        kind=EntryKind.CREDIT,
        amount=amount,
        order_reference=order_reference,
        note=_clean(note, what=gettext_noop("note"), max_length=NOTE_LENGTH),
    )
    return _book(entry, actor=actor, booking_reference=booking_reference)


def reverse(*, entry: LedgerEntry, actor: str, note: str, reason: str | None = None) -> LedgerEntry:
    """Books the opposite of a booking, once. `note` says why to staff, `reason` to the merchant.

    The credit of a top-up must be reversed through topups/fulfilment/refunds.py. Raises
    AlreadyBooked, BadBooking if the entry is no booking or a reversal itself, or OrderRefused with
    `insufficient_balance`.
    """
    if not entry.can_be_reversed:
        raise BadBooking(_("only a booking can be reversed, and no reversal"))
    reversal = LedgerEntry(
        wallet_id=entry.wallet_id,
        kind=entry.kind,
        amount=-entry.amount,
        order_reference=entry.order_reference,
        note=_clean(note, what=gettext_noop("note"), max_length=NOTE_LENGTH),
        reason=reason,
    )
    return _book(reversal, actor=actor, booking_reference=entry.reversal_reference)


def refund(*, account: Account, amount: Decimal, order_reference: str, actor: str) -> LedgerEntry:
    """Pays back what a failed order cost, or what is left of it after credits.

    Raises IntegrityError if the order was already refunded, and BadBooking if refunds and credits
    would be more than the order cost.
    """
    return _post(
        LedgerEntry(
            wallet_id=account.pk,
            kind=EntryKind.REFUND,
            amount=amount,
            order_reference=order_reference,
            actor=actor,
        )
    )


def _book(entry: LedgerEntry, *, actor: str, booking_reference: str) -> LedgerEntry:
    """Posts an entry with a booking reference and its audit entry, once."""
    entry.actor = actor
    entry.booking_reference = _clean(
        booking_reference,
        what=gettext_noop("booking reference"),
        max_length=BOOKING_REFERENCE_LENGTH,
    )
    _check(entry.amount)
    refuse_repeated(entry)
    try:
        with transaction.atomic():
            _record(_post(entry))
    except (IntegrityError, OrderRefused, BadBooking):
        # The first booking may have been committed while this one waited for the wallet. It may
        # also be why the money is gone.
        refuse_repeated(entry)
        raise
    return entry


def _record(entry: LedgerEntry) -> None:
    """Adds the audit entry of a booking. Staff find it by the account and by its reference."""
    account = Account.objects.get(pk=entry.wallet_id)
    is_reversal = entry.reversed_entry is not None

    def money(value: Decimal) -> str:
        return f"{money_text(value)} {account.currency}"

    actor = current_actor()
    about = {"order": entry.order_reference, "reversed_entry": entry.reversed_entry}
    # An entry that needed approval is in the name of the person who asked for it.
    if actor and f"admin:{actor.get_username()}"[:ACTOR_LENGTH] != entry.actor:
        about |= {
            "asked_by": entry.actor.removeprefix("admin:"),
            "approved_by": actor.get_username(),
        }
    record_action(
        actor=actor or entry.actor,
        action=AuditAction.BOOKING_REVERSED if is_reversal else BOOKED[EntryKind(entry.kind)],
        on=account,
        reference=reference_of(entry),
        note=entry.note,
        changes={
            "account": (None, account.name),
            "amount": (None, money(entry.amount)),
            "balance": (money(entry.balance_after - entry.amount), money(entry.balance_after)),
            "booking_reference": (None, entry.booking_reference),
        }
        | {name: (None, value) for name, value in about.items() if value is not None},
    )


def refuse_repeated(entry: LedgerEntry) -> None:
    """Raises AlreadyBooked if the ledger has this booking, BadBooking if it has another one."""
    first = find_booking(entry.booking_reference or "")
    if first is None:
        return
    same = ("wallet_id", "kind", "amount", "order_reference")
    if all(getattr(first, name) == getattr(entry, name) for name in same):
        raise AlreadyBooked(first)
    order = first.order_reference and _(", order %(order)s") % {"order": first.order_reference}
    raise BadBooking(
        _(
            "the booking reference %(reference)s was used before, for a %(kind)s of %(amount)s on"
            " account %(account)s%(order)s"
        )
        % {
            "reference": repr(first.booking_reference),
            "kind": str(EntryKind(first.kind).label).lower(),
            "amount": local_amount(first.amount),
            "account": first.wallet_id,
            "order": order or "",
        }
    )


def _post(entry: LedgerEntry) -> LedgerEntry:
    _check(entry.amount)
    entry.counterpart = COUNTERPARTS[EntryKind(entry.kind)]
    entry.balance_after = Decimal(0)  # set by the trigger
    with refusals(refused_entry), transaction.atomic():
        entry.save(force_insert=True)
    entry.refresh_from_db()
    return entry


def refused_entry(word: str) -> Exception:
    """The exception for the word with which the ledger refused an entry: BadBooking or
    OrderRefused."""
    if word in REFUSED:
        return BadBooking(REFUSED[word])
    return order_refused(word)


def _clean(text: str, *, what: str, max_length: int) -> str:
    try:
        return clean_text(text, what=what, max_length=max_length)
    except InputProblem as problem:
        message = str(problem).rstrip(".")
        raise BadBooking(message[0].lower() + message[1:]) from None


def _check(amount: Decimal) -> None:
    if not amount.is_finite():
        raise BadBooking(_("the amount is not a number"))
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > MONEY_DECIMALS:
        raise BadBooking(
            _("the amount has more than %(decimals)s decimals") % {"decimals": MONEY_DECIMALS}
        )
    if abs(amount) >= Decimal(10) ** (MONEY_DIGITS - MONEY_DECIMALS):
        raise BadBooking(_("the amount is too large"))
