"""Refunding failed fulfilments, exactly once each.

A rejection makes the refund due; this module carries it out. It may run any number of times and may
be killed at any point: it locks the fulfilment, credits the wallet and sets `refunded_at` in one
transaction, and the ledger accepts only one refund per order.
"""

import random
import time

import structlog
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from topups.models import Channel, Fulfilment, FulfilmentEvent
from wallets.services import refund

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
    """Credits the wallet if the refund is still due; returns whether it was."""
    with transaction.atomic():
        fulfilment = refunds_due().select_for_update().filter(pk=fulfilment_id).first()
        if fulfilment is None:
            return False
        refund(
            account=fulfilment.account,
            amount=fulfilment.amount,
            order_reference=fulfilment.order_reference,
            actor=ACTOR,
        )
        Fulfilment.objects.filter(pk=fulfilment.pk).update(refunded_at=timezone.now())
        FulfilmentEvent.objects.create(
            fulfilment=fulfilment,
            move="refund",
            from_status=fulfilment.status,
            to_status=fulfilment.status,
            actor=ACTOR,
            channel=Channel.SYSTEM,
        )
    return True


def sweep_refunds() -> int:
    """Carries out due refunds whose tasks were lost; returns how many.

    Each refund is a transaction of its own. One that fails is logged and stays due; the others go
    on. The order is random, so refunds that always fail or wait do not always come first.
    """
    end = time.monotonic() + SECONDS
    due = list(refunds_due().values_list("pk", "order_reference")[:BATCH])
    random.shuffle(due)
    done = 0
    for pk, reference in due:
        if time.monotonic() >= end:
            break
        done += _try_refund(pk, reference)
    return done


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
