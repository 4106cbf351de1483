"""Holds the codes of purchases that a restore lost, and stops their keys from buying again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Count, F, Sum

from accounts.models import ApiClient
from catalogue.holds import hold_codes
from catalogue.models import CodeHold
from idempotency.services import block_key
from orders.models import LostPurchase, Order
from orders.purchase_log import LoggedPurchase

BATCH = 1000


def hold_lost_purchases(
    purchases: Iterable[LoggedPurchase], *, reason: str, held_by: str
) -> dict[str, Any]:
    """Holds the codes of each purchase that the database lacks, blocks its key, and records it.

    All or nothing; a second run finds nothing new. Returns the hold, the numbers of codes held and
    purchases lost, and what merchants received without paying, by account and currency.
    """
    with transaction.atomic():
        lost = list(_not_in_the_database(purchases))
        hold, held = hold_codes(
            digests=[digest for purchase in lost for digest in purchase.digests],
            reason=reason,
            held_by=held_by,
        )
        recorded = _record(lost, hold)
        for purchase in recorded:
            block_key(
                client_id=purchase.client_id,
                key=purchase.key,
                fingerprint=purchase.fingerprint,
                reference=purchase.reference,
                bought_at=purchase.sold_at,
            )
    return {
        "hold": hold.pk if hold else None,
        "codes_held": held,
        "purchases_lost": len(lost),
        "purchases_of_unknown_clients": len(lost) - len(recorded),
        "unpaid": _unpaid(),
    }


def _not_in_the_database(purchases: Iterable[LoggedPurchase]) -> Iterator[LoggedPurchase]:
    """The purchases that are neither an order nor recorded as lost."""
    remaining = iter(purchases)
    while batch := {purchase.reference: purchase for purchase in islice(remaining, BATCH)}:
        for model in (Order, LostPurchase):
            known = model.objects.filter(reference__in=batch)
            for reference in known.values_list("reference", flat=True):
                batch.pop(reference, None)
        yield from batch.values()


def _record(lost: Sequence[LoggedPurchase], hold: CodeHold | None) -> list[LoggedPurchase]:
    """Records the purchases whose client exists. A client that was lost too has no key to retry."""
    clients = set(
        ApiClient.objects.filter(pk__in={purchase.client_id for purchase in lost}).values_list(
            "pk", flat=True
        )
    )
    recorded = [purchase for purchase in lost if purchase.client_id in clients]
    LostPurchase.objects.bulk_create(
        LostPurchase(
            reference=purchase.reference,
            client_id=purchase.client_id,
            total_price=purchase.price,
            currency=purchase.currency,
            sold_at=purchase.sold_at,
            hold=hold if purchase.digests else None,
        )
        for purchase in recorded
    )
    return recorded


def _unpaid() -> list[dict[str, Any]]:
    """What all recorded lost purchases cost, by account and currency."""
    sums = LostPurchase.objects.values("currency", account_id=F("client__account")).annotate(
        purchases=Count("pk"), amount=Sum("total_price")
    )
    return [dict(row) for row in sums.order_by("account_id", "currency")]
