"""Replacing a code of an order: one code of the same shelf, as an order of the same client that
costs nothing (docs/decisions/0099-cases.md)."""

from django.db import transaction
from ulid import ULID

from core.database.functions import query, refusals
from core.database.key_ring import key_ring
from orders.codes import order_secret
from orders.models import Order
from orders.recovery.purchase_log import log_purchase
from wallets.models import REPLACEMENT_OF
from wallets.services import refused_entry


@transaction.atomic
def replace_code(*, case_id: int, of: Order, actor: str) -> Order:
    """Hands over the next code of the shelf of `of`, in the caller's transaction.

    A case has one replacement. The ledger has an entry of zero for it, so the merchant's statement
    names it, and the margins count the cost of the code.

    Raises OrderRefused with `insufficient_stock`, and BadBooking if the order that was paid has
    given back what it cost (cases/sql/given_back.sql). Raises DatabaseError if the shelf's next
    code was sealed with an encryption key that this process does not have.
    """
    reference = str(ULID())
    client = of.client
    with refusals(refused_entry):
        rows = query(
            "orders_replace_code",
            case_id,
            reference,
            client.pk,
            client.account_id,
            of.shelf_id,
            of.currency,
            key_ring().ids,
            order_secret(client_id=client.pk, reference=reference),
            actor,
            f"Replaces a code of order {of.reference}",
        )
    order = Order.objects.get(reference=reference)
    # Before the commit: no retry would write the line of a process that dies after it. After a
    # rollback, the line names an order that does not exist, and nobody received its code.
    log_purchase(
        client_id=client.pk,
        key=f"{REPLACEMENT_OF}{case_id}",
        fingerprint=b"",
        reference=reference,
        price=order.total_price,
        currency=order.currency,
        sold_at=order.created_at,
        digests=rows[0]["digests"],
    )
    return order
