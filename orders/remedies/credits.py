"""Crediting an order: paying back a part or all of what it cost, because something went wrong."""

from decimal import Decimal

from django.utils.translation import gettext as _

from orders.models import Order
from topups.fulfilment.refunds import credit_topup
from topups.models import Channel
from wallets.models import LedgerEntry
from wallets.services import BadBooking, credit


def credit_order(
    *,
    reference: str,
    amount: Decimal,
    note: str,
    actor: str,
    channel: Channel,
    booking_reference: str,
) -> LedgerEntry:
    """Credits an order; `amount` is in the order's currency and `note` is for the merchant.

    An order may get several credits. The ledger refuses one that would make refunds and credits
    more than the order cost. A failed top-up that is paid back in full becomes refunded in the same
    transaction. `actor` and `channel` say who credits, and from where.

    Raises AlreadyBooked if the same booking is in the ledger already, and BadBooking.
    """
    order = Order.objects.filter(reference=reference).first()
    if order is None:
        raise BadBooking(_("there is no order with this reference"))
    if order.fulfilment_id is None:
        return credit(
            order_reference=order.reference,
            amount=amount,
            actor=actor,
            note=note,
            booking_reference=booking_reference,
        )
    return credit_topup(
        fulfilment_id=order.fulfilment_id,
        amount=amount,
        actor=actor,
        channel=channel,
        note=note,
        booking_reference=booking_reference,
    )
