"""Bookings that wait for a second person: asking, approving, rejecting and withdrawing.

A booking above its maker's limit (wallets/limits.py) becomes a row that waits. Another person's
approval books it in the same transaction, with the service that would have booked it at once. The
maker may withdraw it, others may reject it, and after seven days it has expired.
"""

from collections.abc import Callable
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from audit.models import AuditAction
from audit.services import record_action
from core.inputs import InputProblem
from core.json_output import money_text
from wallets.models import ApprovalState, BookingApproval, LedgerEntry
from wallets.selectors import reference_of

VALID_FOR = timedelta(days=7)


def waiting_approvals() -> QuerySet[BookingApproval]:
    """The bookings that can be approved now."""
    return BookingApproval.objects.filter(
        state=ApprovalState.WAITING, expires_at__gt=timezone.now()
    )


def waiting_booking(booking_reference: str) -> BookingApproval | None:
    """The booking with this reference that can be approved now."""
    waiting = waiting_approvals().filter(booking_reference=booking_reference)
    return waiting.select_related("asked_by").first()


def expire_approvals() -> int:
    """Ends the bookings that nobody approved in time; returns how many."""
    return _expire(BookingApproval.objects.filter(state=ApprovalState.WAITING))


@transaction.atomic
def ask_for_approval(*, booking: BookingApproval) -> BookingApproval:
    """Stores a booking until somebody else decides; `booking` is not saved yet.

    Returns the row that waits already if the same person asked for the same booking before. Raises
    InputProblem if another booking with this reference waits.
    """
    same = BookingApproval.objects.filter(
        booking_reference=booking.booking_reference, state=ApprovalState.WAITING
    )
    _expire(same)
    booking.expires_at = timezone.now() + VALID_FOR
    try:
        with transaction.atomic():
            booking.save(force_insert=True)
    except IntegrityError:
        first = same.first()
        if first is None:
            raise
        names = ("wallet_id", "kind", "amount", "order_reference", "asked_by_id")
        if any(getattr(first, name) != getattr(booking, name) for name in names):
            raise InputProblem(
                _("Another booking with this reference waits for approval already.")
            ) from None
        return first
    booking.refresh_from_db()
    _record(booking, actor=booking.asked_by, action=AuditAction.BOOKING_ASKED, note=booking.note)
    return booking


@transaction.atomic
def approve_booking(
    *, booking: BookingApproval, actor: User, book: Callable[[BookingApproval], LedgerEntry]
) -> LedgerEntry | None:
    """Books with `book`. Returns None if the booking no longer waits.

    Raises InputProblem if `actor` asked for it: two people must agree. Raises what `book` raises;
    the booking then still waits.
    """
    locked = waiting_approvals().select_for_update(of=("self",)).filter(pk=booking.pk).first()
    if locked is None:
        return None
    if locked.asked_by_id == actor.pk:
        raise InputProblem(
            _("You asked for this booking. Another member of staff must approve it.")
        )
    entry = book(locked)
    if not _decide(locked, actor=actor, state=ApprovalState.BOOKED, entry=entry):
        raise InputProblem(_("This booking expired while it was approved. Nothing was booked."))
    _record(locked, actor=actor, action=AuditAction.BOOKING_APPROVED, note=locked.note)
    return entry


@transaction.atomic
def reject_booking(*, booking: BookingApproval, actor: User, note: str) -> bool:
    """Ends a booking that waits. Its maker withdraws it, anybody else rejects it.

    Returns False if it no longer waits.
    """
    own = booking.asked_by_id == actor.pk
    state = ApprovalState.WITHDRAWN if own else ApprovalState.REJECTED
    if not _decide(booking, actor=actor, state=state):
        return False
    action = AuditAction.BOOKING_WITHDRAWN if own else AuditAction.BOOKING_REJECTED
    _record(booking, actor=actor, action=action, note=note)
    return True


def _expire(waiting: QuerySet[BookingApproval]) -> int:
    return waiting.filter(expires_at__lte=timezone.now()).update(state=ApprovalState.EXPIRED)


def _decide(
    booking: BookingApproval, *, actor: User, state: ApprovalState, entry: LedgerEntry | None = None
) -> int:
    return (
        waiting_approvals()
        .filter(pk=booking.pk)
        .update(state=state, decided_by=actor, decided_at=timezone.now(), entry=entry)
    )


def _record(booking: BookingApproval, *, actor: User, action: AuditAction, note: str) -> None:
    account = booking.wallet.account
    approver = {"approved_by": actor} if action == AuditAction.BOOKING_APPROVED else {}
    kind = booking.kind if booking.reversed_entry is None else "reversal"
    record_action(
        actor=actor,
        action=action,
        on=booking,
        reference=reference_of(booking),
        note=note,
        changes={
            "account": (None, account.name),
            "kind": (None, kind),
            "amount": (None, f"{money_text(booking.amount)} {account.currency}"),
            "booking_reference": (None, booking.booking_reference),
            "asked_by": (None, booking.asked_by.get_username()),
        }
        | {name: (None, person.get_username()) for name, person in approver.items()},
    )
