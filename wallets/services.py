"""The only ways money moves, next to `wallets_debit` (wallets/sql/debit.sql) within a purchase."""

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
    """The amount cannot be booked; the message says why."""


class AlreadyBooked(Exception):
    """The form that asks for this entry was sent before."""


def open_wallet(*, account: Account) -> Wallet:
    """Gives the account an empty wallet. Raises IntegrityError where it has one."""
    return Wallet.objects.create(account=account)


def deposit(
    *,
    account: Account,
    amount: Decimal,
    actor: str,
    note: str = "",
    booking: UUID | None = None,
) -> LedgerEntry:
    """Credits what the merchant paid in. Raises BadAmount, AlreadyBooked where this `booking` is in
    the ledger, and OrderRefused with `client_without_wallet`."""
    if amount <= 0:
        raise BadAmount("a deposit is more than zero")
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
    """Corrects a balance by a signed amount. Raises BadAmount, AlreadyBooked, and OrderRefused with
    `insufficient_balance` where the wallet would fall below zero, or `client_without_wallet`."""
    if amount == 0:
        raise BadAmount("an adjustment is not zero")
    return _post(
        account=account,
        kind=EntryKind.ADJUSTMENT,
        amount=amount,
        actor=actor,
        note=note,
        booking=booking,
    )


def refund(*, account: Account, amount: Decimal, order_reference: str, actor: str) -> LedgerEntry:
    """Gives the price of an order back. Raises IntegrityError where it was refunded before."""
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
        raise AlreadyBooked  # the unique column is what keeps two at once apart
    with refusals(order_refused), transaction.atomic():
        entry = LedgerEntry.objects.create(
            wallet_id=account.pk,
            kind=kind,
            counterpart=COUNTERPARTS[kind],
            amount=amount,
            balance_after=0,  # the trigger writes the true one
            order_reference=order_reference,
            actor=actor,
            note=note,
            booking=booking,
        )
    entry.refresh_from_db()
    return entry


def _check(amount: Decimal) -> None:
    if not amount.is_finite():
        raise BadAmount("an amount is a number")
    exponent = amount.normalize().as_tuple().exponent
    if isinstance(exponent, int) and -exponent > MONEY_DECIMALS:
        raise BadAmount(f"an amount has at most {MONEY_DECIMALS} decimals")
    if abs(amount) >= Decimal(10) ** (MONEY_DIGITS - MONEY_DECIMALS):
        raise BadAmount("the amount is too large")
