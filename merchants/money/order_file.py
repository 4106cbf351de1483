"""Writes orders as a file, in pieces, so its size is not limited by memory. It holds no codes."""

import csv
from collections.abc import Generator
from typing import Any

from accounts.time_zones import local_text, with_zone
from core.csv_cells import Echo, harmless
from core.json_output import money_text
from orders.account_orders import OrderList, read_orders
from orders.models import Order

COLUMNS = [
    *("reference", "idempotency_key", "time", "client", "status", "product", "quantity", "units"),
    *("unit_price", "total_price", "currency", "player_id", "failure_reason", "refunded"),
]
LINES_AT_ONCE = 200


def write_orders(orders: OrderList) -> Generator[bytes]:
    """Yields the column names, then one line for each order, newest first.

    A text that a spreadsheet could take for a formula starts with an apostrophe.
    """
    writer = csv.writer(Echo())
    lines = [writer.writerow(with_zone(COLUMNS))]
    for order in read_orders(orders):
        lines.append(writer.writerow(_cells(order)))
        if len(lines) == LINES_AT_ONCE:
            yield "".join(lines).encode()
            lines = []
    yield "".join(lines).encode()


def _cells(order: Order) -> list[Any]:
    fulfilment = order.fulfilment
    return [
        order.reference,
        harmless(order.idempotency_key),
        local_text(order.created_at),
        harmless(order.client.name),
        order.status,
        harmless(order.goods),
        order.quantity,
        order.units,
        money_text(order.unit_price),
        money_text(order.total_price),
        order.currency,
        harmless(fulfilment.player_id if fulfilment else ""),
        (fulfilment.failure_reason or "") if fulfilment else "",
        ("yes" if fulfilment.refunded else "no") if fulfilment else "",
    ]
