"""The bookings of staff: made at once within the limits of their maker, else after an approval."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from core.database.columns import ACTOR_LENGTH
from core.formats import local_amount
from core.texts import lazy
from orders.models import Order
from orders.remedies.credits import credit_order
from topups.fulfilment.refunds import reverse_credit_of_topup
from topups.models import Channel
from wallets.approvals import approve_booking, ask_for_approval
from wallets.limits import booked_today, count_booking, limits_of
from wallets.models import BookingApproval, EntryKind, LedgerEntry
from wallets.services import adjust, deposit, pay_out, refuse_repeated, reverse

OF_A_DAY = {
    EntryKind.DEPOSIT: lazy("above your limit of %(limit)s for all deposits of a day"),
    EntryKind.PAYOUT: lazy("above your limit of %(limit)s for all payouts of a day"),
    EntryKind.ADJUSTMENT: lazy("above your limit of %(limit)s for all adjustments of a day"),
    EntryKind.CREDIT: lazy("above your limit of %(limit)s for all credits of a day"),
}


def approval_reason(booking: BookingApproval) -> str:
    """Why the booking needs an approval, as a part of a sentence; empty if it needs none."""
    kind, currency = EntryKind(booking.kind), booking.wallet.account.currency
    limits = limits_of(booking.asked_by, kind=kind, currency=currency)
    amount = abs(booking.amount)
    if amount > limits.booking:
        return _("above your limit of %(limit)s") % {
            "limit": local_amount(limits.booking, currency)
        }
    if booked_today(booking.asked_by, kind=kind, currency=currency) + amount > limits.day:
        return OF_A_DAY[kind] % {"limit": local_amount(limits.day, currency)}
    return ""


def book_or_ask(*, booking: BookingApproval) -> LedgerEntry | BookingApproval:
    """Makes a booking that is not saved yet: the ledger entry, or the row that now waits.

    Raises AlreadyBooked, BadBooking, OrderRefused, or InputProblem if another booking with this
    reference waits.
    """
    with transaction.atomic():
        if count_booking(
            user=booking.asked_by,
            kind=EntryKind(booking.kind),
            currency=booking.wallet.account.currency,
            amount=abs(booking.amount),
        ):
            return _book(booking)
    refuse_repeated(
        LedgerEntry(
            wallet_id=booking.wallet_id,
            kind=booking.kind,
            amount=booking.amount,
            order_reference=booking.order_reference,
            booking_reference=booking.booking_reference,
        )
    )
    return ask_for_approval(booking=booking)


def approve(*, booking: BookingApproval, actor: User) -> LedgerEntry | None:
    """Makes a booking that waits. Returns None if it no longer waits. Raises what `book_or_ask`
    raises, and InputProblem if `actor` asked for it."""
    return approve_booking(booking=booking, actor=actor, book=_book)


def _book(booking: BookingApproval) -> LedgerEntry:
    """Books in the name of the person who asked."""
    actor = f"admin:{booking.asked_by.get_username()}"[:ACTOR_LENGTH]
    if booking.reversed_entry is not None:
        entry = LedgerEntry.objects.get(pk=booking.reversed_entry)
        return _reverse(entry, actor=actor, note=booking.note, reason=booking.reason)
    if booking.kind == EntryKind.CREDIT:
        return credit_order(
            reference=booking.order_reference or "",
            amount=booking.amount,
            note=booking.note,
            actor=actor,
            channel=Channel.ADMIN,
            booking_reference=booking.booking_reference,
        )
    services = {EntryKind.DEPOSIT: deposit, EntryKind.PAYOUT: pay_out, EntryKind.ADJUSTMENT: adjust}
    paid_out = booking.kind == EntryKind.PAYOUT
    return services[EntryKind(booking.kind)](
        account=booking.wallet.account,
        amount=-booking.amount if paid_out else booking.amount,
        actor=actor,
        note=booking.note,
        reason=booking.reason,
        booking_reference=booking.booking_reference,
    )


def _reverse(entry: LedgerEntry, *, actor: str, note: str, reason: str | None) -> LedgerEntry:
    order = Order.objects.filter(reference=entry.order_reference or "").first()
    if order is not None and order.fulfilment_id is not None:
        return reverse_credit_of_topup(
            fulfilment_id=order.fulfilment_id, entry=entry, actor=actor, note=note, reason=reason
        )
    return reverse(entry=entry, actor=actor, note=note, reason=reason)
