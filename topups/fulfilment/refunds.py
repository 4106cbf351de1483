"""Paying back what top-ups cost: the refunds of failed fulfilments, exactly once each, and credits.

A rejection makes the refund due; this module carries it out. It may run any number of times and may
be killed at any point: it locks the fulfilment, pays into the wallet and sets `refunded_at` in one
transaction. The ledger accepts only one refund per order, and never more refunds and credits than
the order cost. Staff may credit an order at any time; a credit takes the same lock.
"""

import random
import time
from decimal import Decimal
from functools import partial

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from topups.models import Channel, Fulfilment, FulfilmentEvent, FulfilmentStatus
from topups.signals import fulfilment_refunded
from wallets.models import LedgerEntry
from wallets.selectors import left_to_pay_back
from wallets.services import BadBooking, credit, refund, reverse

logger = structlog.get_logger(__name__)

ACTOR = "system"
# The limits of one sweep. It ends well before CELERY_TASK_SOFT_TIME_LIMIT; the next one continues.
BATCH = 10_000
SECONDS = 15.0
LOCK_TIMEOUT = "1s"


def refunds_due() -> QuerySet[Fulfilment]:
    """The fulfilments whose refund is due and not carried out, the longest due first."""
    return Fulfilment.objects.filter(refund_due_at__isnull=False, refunded_at=None).order_by(
        "refund_due_at"
    )


def carry_out_refund(fulfilment_id: int) -> bool:
    """Pays back what credits have left of the price, if the refund is still due; returns whether it
    was due. After credits of the whole price it moves no money."""
    with transaction.atomic():
        fulfilment = refunds_due().select_for_update().filter(pk=fulfilment_id).first()
        if fulfilment is None:
            return False
        left = left_to_pay_back(fulfilment.order_reference)
        if left:
            refund(
                account=fulfilment.account,
                amount=left,
                order_reference=fulfilment.order_reference,
                actor=ACTOR,
            )
        settle(fulfilment, actor=ACTOR, channel=Channel.SYSTEM)
    return True


def credit_topup(
    *,
    fulfilment_id: int,
    amount: Decimal,
    actor: str,
    channel: Channel,
    note: str,
    booking_reference: str,
) -> LedgerEntry:
    """Credits a part or all of what a top-up cost; orders/remedies/credits.py calls it.

    A failed fulfilment that is now paid back in full becomes refunded. Raises AlreadyBooked or
    BadBooking.
    """
    with transaction.atomic():
        fulfilment = Fulfilment.objects.select_for_update().get(pk=fulfilment_id)
        entry = credit(
            order_reference=fulfilment.order_reference,
            amount=amount,
            actor=actor,
            note=note,
            booking_reference=booking_reference,
        )
        settle(fulfilment, actor=actor, channel=channel, note=entry.note)
    return entry


def reverse_credit_of_topup(
    *, fulfilment_id: int, entry: LedgerEntry, actor: str, note: str, reason: str | None
) -> LedgerEntry:
    """Takes a credit of a top-up back; orders/remedies/bookings.py calls it.

    Raises what `reverse` raises, and BadBooking for a failed top-up: its merchant counts on the
    refund, which was less by this credit.
    """
    with transaction.atomic():
        fulfilment = Fulfilment.objects.select_for_update().get(pk=fulfilment_id)
        if fulfilment.status == FulfilmentStatus.FAILED:
            raise BadBooking(
                _("the top-up failed, and this credit is a part of what was paid back")
            )
        return reverse(entry=entry, actor=actor, note=note, reason=reason)


def settle(fulfilment: Fulfilment, *, actor: str, channel: Channel, note: str = "") -> None:
    """Marks a failed fulfilment as refunded once it has been paid back in full.

    The caller holds the fulfilment's row lock, in the transaction of the payment or the move. Sends
    `fulfilment_refunded` after the commit.
    """
    if fulfilment.status != FulfilmentStatus.FAILED or fulfilment.refunded:
        return
    if left_to_pay_back(fulfilment.order_reference) > 0:
        return
    Fulfilment.objects.filter(pk=fulfilment.pk).update(refunded_at=timezone.now())
    FulfilmentEvent.objects.create(
        fulfilment=fulfilment,
        move="refund",
        from_status=fulfilment.status,
        to_status=fulfilment.status,
        actor=actor,
        channel=channel,
        note=note,
    )
    transaction.on_commit(
        partial(fulfilment_refunded.send_robust, sender=Fulfilment, fulfilment_id=fulfilment.pk)
    )


def sweep_refunds() -> int:
    """Carries out due refunds whose tasks were lost; returns how many.

    Each refund is a transaction of its own. One that fails is logged and stays due; the others go
    on. The order is random, so refunds that always fail or wait do not always come first.
    """
    end = time.monotonic() + SECONDS
    due = list(refunds_due().values_list("pk", "order_reference")[:BATCH])
    random.shuffle(due)
    refunds = 0
    for pk, reference in due:
        if time.monotonic() >= end:
            break
        refunds += _try_refund(pk, reference)
    return refunds


def _try_refund(fulfilment_id: int, reference: str) -> bool:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
            return carry_out_refund(fulfilment_id)
    except Exception as error:
        if not connection.is_usable():  # not the fault of this refund: the database is gone
            raise
        logger.error(
            "refund_failed",
            order=reference,
            cause=type(error).__name__,
            message=str(error).partition("\n")[0],
        )
        return False
