"""The columns of orders in a file. It holds no codes."""

from collections.abc import Callable
from typing import Any

from accounts.preferences.time_zones import local_text
from orders.models import Order
from topups.models import Fulfilment


def _topup_cell(cell: Callable[[Fulfilment], Any]) -> Callable[[Order], Any]:
    """A cell that is empty for vouchers."""
    return lambda order: cell(order.fulfilment) if order.fulfilment else ""


CELLS: dict[str, Callable[[Order], Any]] = {
    "reference": lambda order: order.reference,
    "idempotency_key": lambda order: order.idempotency_key,
    "time": lambda order: local_text(order.created_at),
    "client": lambda order: order.client.name,
    "status": lambda order: order.status,
    "product": lambda order: order.goods,
    "quantity": lambda order: order.quantity,
    "units": lambda order: order.units,
    "unit_price": lambda order: order.unit_price,
    "total_price": lambda order: order.total_price,
    "currency": lambda order: order.currency,
    "player_id": _topup_cell(lambda fulfilment: fulfilment.player_id),
    "failure_reason": _topup_cell(lambda fulfilment: fulfilment.failure_reason or ""),
    "refunded": _topup_cell(lambda fulfilment: fulfilment.refunded),
    "fields": _topup_cell(lambda fulfilment: ", ".join(map(": ".join, fulfilment.labelled_fields))),
}
COLUMNS = list(CELLS)


def cells_of(order: Order) -> list[Any]:
    """The cells of COLUMNS."""
    return [cell(order) for cell in CELLS.values()]
