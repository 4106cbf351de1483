"""Crediting the wallet for a failed fulfilment, exactly once.

The refund is due from the moment the fulfilment fails; this carries it out. However often it runs,
and wherever it is killed, one credit comes of it: the fulfilment's row is locked, the credit and
`refunded_at` are one transaction, and the ledger takes one refund per order and no more.
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
# One sweep. It ends well before CELERY_TASK_SOFT_TIME_LIMIT; the next one goes on.
BATCH = 10_000
SECONDS = 15.0
LOCK_TIMEOUT = "1s"


def refunds_due() -> QuerySet[Fulfilment]:
    """Failed fulfilments whose wallet is not credited yet, longest due first."""
    return Fulfilment.objects.filter(refund_due_at__isnull=False, refunded_at=None).order_by(
        "refund_due_at"
    )


def carry_out_refund(fulfilment_id: int) -> bool:
    """Credits the wallet if the refund is still due; returns whether it did."""
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
    """Carries out the refunds that are due, whatever became of their tasks; returns how many.

    Each is a transaction of its own: one that fails is logged, stays due, and holds up no other.
    The order is random, so that those which fail or wait each time are not first each time.
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
        if not connection.is_usable():  # the database is gone, and this refund not to blame
            raise
        logger.error(
            "refund_failed",
            order=reference,
            cause=type(error).__name__,
            message=str(error).partition("\n")[0],
        )
        return False
