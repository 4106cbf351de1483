"""The columns of orders in a file. It holds no codes."""

from typing import Any

from accounts.time_zones import local_text
from orders.models import Order

COLUMNS = [
    *("reference", "idempotency_key", "time", "client", "status", "product", "quantity", "units"),
    *("unit_price", "total_price", "currency", "player_id", "failure_reason", "refunded"),
]


def cells_of(order: Order) -> list[Any]:
    """The cells of COLUMNS."""
    fulfilment = order.fulfilment
    return [
        order.reference,
        order.idempotency_key,
        local_text(order.created_at),
        order.client.name,
        order.status.value,
        order.goods,
        order.quantity,
        order.units,
        order.unit_price,
        order.total_price,
        order.currency,
        fulfilment.player_id if fulfilment else "",
        (fulfilment.failure_reason or "") if fulfilment else "",
        ("yes" if fulfilment.refunded else "no") if fulfilment else "",
    ]
