"""Booking ledger entries: deposits, adjustments and refunds.

The debit of a purchase is booked in SQL (wallets/sql/debit.sql). Money moves in no other way.
"""

from decimal import Decimal
from uuid import UUID

from django.db import transaction

from accounts.models import Account
from config.api.errors import order_refused
from config.database.columns import MONEY_DECIMALS, MONEY_DIGITS
from config.database.functions import refusals
from wallets.models import (
    COUNTERPARTS,
    EntryKind,
    LedgerEntry,
    Wallet,
)


class BadAmount(ValueError):
    """The amount cannot be booked. The message says why, as the end of a sentence."""


class AlreadyBooked(Exception):
    """The form was sent before, and its entry is in the ledger."""


def open_wallet(*, account: Account) -> Wallet:
    """Gives the account an empty wallet. Raises IntegrityError if it already has one."""
    return Wallet.objects.create(account=account)


def deposit(
    *,
    account: Account,
    amount: Decimal,
    actor: str,
    note: str = "",
    booking: UUID | None = None,
) -> LedgerEntry:
    """Books what the merchant paid in, in units of the account's currency.

    `booking` identifies the form that asked for it. Raises BadAmount, AlreadyBooked if the ledger
    already has this `booking`, or OrderRefused with `client_without_wallet`.
    """
    if amount <= 0:
        raise BadAmount("a deposit must be more than zero")
    return _post(
        account=account,
        kind=EntryKind.DEPOSIT,
        amount=amount,
        actor=actor,
        note=note,
        booking=booking,
    )


def adjust(
    *, account: Account, amount: Decimal, actor: str, note: str, booking: UUID | None = None
) -> LedgerEntry:
    """Corrects the balance by a positive or negative amount.

    Raises BadAmount, AlreadyBooked (see `deposit`), or OrderRefused with `insufficient_balance` if
    the balance would fall below zero, or with `client_without_wallet`.
    """
    if amount == 0:
        raise BadAmount("an adjustment must not be zero")
    return _post(
        account=account,
        kind=EntryKind.ADJUSTMENT,
        amount=amount,
        actor=actor,
        note=note,
        booking=booking,
    )


def refund(*, account: Account, amount: Decimal, order_reference: str, actor: str) -> LedgerEntry:
    """Credits the price of an order. Raises IntegrityError if the order was already refunded."""
    return _post(
        account=account,
        kind=EntryKind.REFUND,
        amount=amount,
        actor=actor,
        order_reference=order_reference,
    )


def _post(
    *,
    account: Account,
    kind: EntryKind,
    amount: Decimal,
    actor: str,
    note: str = "",
    order_reference: str | None = None,
    booking: UUID | None = None,
) -> LedgerEntry:
    _check(amount)
    if booking is not None and LedgerEntry.objects.filter(booking=booking).exists():
        raise AlreadyBooked  # two forms at once are kept apart by the unique column
    with refusals(order_refused), transaction.atomic():
        entry = LedgerEntry.objects.create(
            wallet_id=account.pk,
            kind=kind,
            counterpart=COUNTERPARTS[kind],
            amount=amount,
            balance_after=0,  # set by the trigger
            order_reference=order_reference,
            actor=actor,
            note=note,
            booking=booking,
        )
    entry.refresh_from_db()
    return entry


def _check(amount: Decimal) -> None:
    if not amount.is_finite():
        raise BadAmount("the amount is not a number")
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > MONEY_DECIMALS:
        raise BadAmount(f"the amount has more than {MONEY_DECIMALS} decimals")
    if abs(amount) >= Decimal(10) ** (MONEY_DIGITS - MONEY_DECIMALS):
        raise BadAmount("the amount is too large")
