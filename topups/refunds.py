"""Crediting the wallet for a failed fulfilment, exactly once.

The refund is due from the moment the fulfilment fails; this carries it out. However often it runs,
and wherever it is killed, one credit comes of it: the fulfilment's row is locked, the credit and
`refunded_at` are one transaction, and the ledger takes one refund per order and no more.
"""

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from topups.models import Channel, Fulfilment, FulfilmentEvent
from wallets.services import refund

ACTOR = "system"


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
    """Carries out every refund that is due, whatever became of its task; returns how many."""
    due = refunds_due().values_list("pk", flat=True)
    return sum(carry_out_refund(pk) for pk in due.iterator())
