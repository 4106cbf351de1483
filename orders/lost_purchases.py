"""After a restore that lost purchases: their codes are held, and their keys never buy again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import connection, transaction

from accounts.models import ApiClient
from catalogue.holds import hold_codes
from catalogue.models import CodeHold
from config.database.sealing import CannotOpen
from idempotency.services import block_key
from orders.models import LostPurchase, Order
from orders.purchase_log import LoggedPurchase

BATCH = 1000

# The log names each code by the beginning of its digest.
FIND_CODES = """
    SELECT code.digest, sale.reference
      FROM unnest(%s::bytea[]) AS beginning
      JOIN catalogue_vouchercode AS code
        ON code.digest >= beginning AND code.digest < beginning || %s::bytea
      LEFT JOIN orders_order AS sale ON sale.id = code.order_id
"""


def hold_lost_purchases(
    purchases: Iterable[LoggedPurchase], *, reason: str, held_by: str
) -> dict[str, Any]:
    """Holds the codes of each purchase that the database lacks, blocks its key, and records it.

    All or nothing; a second run finds nothing new. Returns the hold and the number of its codes,
    each lost purchase with what it cost, the number of keys that could not be blocked, and the
    orders that already sold a code of a lost purchase again.
    """
    lost = list(_not_in_the_database(purchases))
    with transaction.atomic():
        digests, sold_again = _find_codes(lost)
        hold, held = hold_codes(digests=digests, reason=reason, held_by=held_by)
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


def _not_in_the_database(purchases: Iterable[LoggedPurchase]) -> Iterator[LoggedPurchase]:
    """The purchases that are neither an order nor recorded as lost, each once."""
    remaining = iter(purchases)
    seen: set[str] = set()
    while read := list(islice(remaining, BATCH)):
        batch = {each.reference: each for each in read if each.reference not in seen}
        seen.update(batch)
        for model in (Order, LostPurchase):
            known = model.objects.filter(reference__in=batch)
            for reference in known.values_list("reference", flat=True):
                batch.pop(reference, None)
        yield from batch.values()


def _find_codes(lost: Sequence[LoggedPurchase]) -> tuple[list[bytes], list[str]]:
    """The digests of their codes, and the orders that have one of these codes now."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        cursor.execute(FIND_CODES, [[code for each in lost for code in each.codes], b"\xff" * 32])
        rows = cursor.fetchall()
    return [bytes(digest) for digest, _ in rows], sorted({order for _, order in rows if order})


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
