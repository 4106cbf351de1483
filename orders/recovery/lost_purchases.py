"""After a restore that lost purchases: holds their codes and blocks their keys."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from accounts.models import ApiClient
from catalogue.models import CodeHold
from catalogue.stock.codes import half_digest
from catalogue.stock.holds import hold_codes
from core.database.functions import remove_statement_timeout
from core.database.sealing import CannotOpen
from idempotency.services import block_key
from orders.models import LostPurchase, Order
from orders.recovery.logged_purchases import LoggedPurchase

BATCH = 1000

# The log names each code by half of its digest.
FIND_CODES = """
    SELECT code.id, sale.reference
      FROM catalogue_codedigest AS stored
      JOIN catalogue_vouchercode AS code ON code.id = stored.code_id
      LEFT JOIN orders_order AS sale ON sale.id = code.order_id
     WHERE stored.digest = ANY (%s)
"""


def hold_lost_purchases(
    purchases: Iterable[LoggedPurchase], *, reason: str, held_by: str
) -> dict[str, Any]:
    """Holds the codes of each purchase that the database lacks, blocks its key, and records it.

    Codes of newly found purchases leave an earlier hold, so that it can be released. All or
    nothing. A second run finds codes that came into stock after the first one, and otherwise
    nothing new. Returns the hold and the number of its codes, each newly found purchase with what
    is unpaid, the number of keys that could not be blocked, and the orders that already sold a code
    again.
    """
    missing = list(_not_an_order(purchases))
    with transaction.atomic():
        lost = _not_recorded(missing)
        codes, sold_again = _find_codes(missing)
        newly_found, _ = _find_codes(lost)
        hold, held = hold_codes(
            codes=Q(pk__in=codes), reason=reason, held_by=held_by, held_codes=Q(pk__in=newly_found)
        )
        accounts = _record(lost, hold)
        not_blocked = sum(not _block(each) for each in lost if each.client_id in accounts)
    return {
        "hold": hold.pk if hold else None,
        "codes_held": held,
        "keys_not_blocked": not_blocked,
        "sold_again_with": sold_again,
        "purchases": [
            {
                "reference": each.reference,
                "account_id": accounts.get(each.client_id),
                "codes": len(each.codes),
                "unpaid": each.price,
                "currency": each.currency,
            }
            for each in lost
        ],
    }


def count_unlogged_orders(logged: Collection[str], *, since: datetime) -> int:
    """The number of orders since a time that are not among the logged references.

    A log that is missing as a whole leaves no gap in the others. But the restored database has
    orders of its host, unless they all came after the moment of the restore.
    """
    orders = Order.objects.filter(created_at__gte=since).values_list("reference", flat=True)
    with transaction.atomic():
        remove_statement_timeout()
        return sum(reference not in logged for reference in orders.iterator())


def _not_an_order(purchases: Iterable[LoggedPurchase]) -> Iterator[LoggedPurchase]:
    """The purchases that the database lacks, each once."""
    remaining = iter(purchases)
    seen: set[str] = set()
    while read := list(islice(remaining, BATCH)):
        batch = {each.reference: each for each in read if each.reference not in seen}
        seen.update(batch)
        known = Order.objects.filter(reference__in=batch)
        for reference in known.values_list("reference", flat=True):
            batch.pop(reference, None)
        yield from batch.values()


def _not_recorded(missing: Sequence[LoggedPurchase]) -> list[LoggedPurchase]:
    """The purchases that no earlier run recorded."""
    recorded = LostPurchase.objects.filter(reference__in={each.reference for each in missing})
    known = set(recorded.values_list("reference", flat=True))
    return [each for each in missing if each.reference not in known]


def _find_codes(purchases: Sequence[LoggedPurchase]) -> tuple[list[int], list[str]]:
    """The codes of these purchases, and the orders that have one of them now."""
    halves = [half for each in purchases for half in each.codes]
    remove_statement_timeout()
    with connection.cursor() as cursor:
        cursor.execute(FIND_CODES, [[half_digest(half) for half in halves]])
        rows = cursor.fetchall()
    return [code for code, _ in rows], sorted({order for _, order in rows if order})


def _record(lost: Sequence[LoggedPurchase], hold: CodeHold | None) -> dict[int, int | None]:
    """Records the purchases whose client exists; returns the account of each such client. A client
    that was lost too has no key to retry."""
    clients = ApiClient.objects.filter(pk__in={each.client_id for each in lost})
    accounts: dict[int, int | None] = dict(clients.values_list("pk", "account"))
    LostPurchase.objects.bulk_create(
        LostPurchase(
            reference=each.reference,
            client_id=each.client_id,
            total_price=each.price,
            currency=each.currency,
            sold_at=each.sold_at,
            hold=hold if each.codes else None,
        )
        for each in lost
        if each.client_id in accounts
    )
    return accounts


def _block(purchase: LoggedPurchase) -> bool:
    """Blocks the key of a lost purchase; False if the line was sealed with a lost key."""
    try:
        key, fingerprint = purchase.request()
    except CannotOpen:
        return False
    block_key(
        client_id=purchase.client_id,
        key=key,
        fingerprint=fingerprint,
        reference=purchase.reference,
    )
    return True
