"""Reading the orders of a client (contract, "GET /orders and GET /orders/{reference}").

Every read goes through `orders_of`, so no client sees the orders of another.
"""

import re
import time
from collections.abc import Iterator
from typing import Any

import structlog

from accounts.models import ApiClient
from core.api.errors import ApiError, ErrorCode
from core.api.pagination import Page
from core.database.columns import ORDER_REFERENCE_LENGTH
from core.database.functions import query
from core.database.sealing import CannotOpen, UnknownKey
from orders.codes import open_codes, order_secret
from orders.models import ClientCounter, OrderStatus, status_of_topup

logger = structlog.get_logger(__name__)

# A page with many codes is opened in parts. After each it rests for some time as long as the part
# took: it keeps the interpreter of the process busy, and a purchase needs it each time that
# PostgreSQL has answered.
CODES_AT_ONCE = 200
REST_TIMES = 9
LONGEST_REST = 0.05  # seconds
REFERENCE_PATTERN = re.compile(rf"[0-9A-Z]{{{ORDER_REFERENCE_LENGTH}}}")


def orders_of(
    client: ApiClient,
    *,
    reference: str | None = None,
    oldest: int | None = None,
    newest: int | None = None,
) -> list[dict[str, Any]]:
    """The client's order with this reference, or its orders numbered `oldest` to `newest`, newest
    first, as rows of orders/sql/orders_of.sql."""
    return query("orders_of", client.pk, client.account_id, reference, oldest, newest)


def may_be_reference(text: str) -> bool:
    return REFERENCE_PATTERN.fullmatch(text) is not None


def get_order(*, client: ApiClient, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The order of the one row of `orders_of`, which orders/look_ahead.py has looked up.

    Raises `order_not_found` if there is none: for an order of another client as for an unknown one.
    """
    if not rows:
        raise ApiError(ErrorCode.ORDER_NOT_FOUND)
    return _show(rows[0], _codes_of(client, rows[0]))


def list_orders(*, client: ApiClient, page: Page) -> tuple[list[dict[str, Any]], int]:
    """One page of the client's orders, newest first, and the total.

    Orders are numbered per client without gaps and never deleted. The counter is the total and a
    page is a range of numbers, so no COUNT and no OFFSET is needed. An order whose codes do
    not open is listed without codes. Raises CannotOpen only if this process lacks a key.
    """
    counter = ClientCounter.objects.filter(client=client).first()
    total = counter.orders if counter else 0
    newest = total - page.offset
    return list(_read_orders(client, newest - page.per_page + 1, newest)), total


def _read_orders(client: ApiClient, oldest: int, newest: int) -> Iterator[dict[str, Any]]:
    """The orders with these numbers as the API shows them, newest first. Rests after many codes, so
    that purchases go on."""
    if newest < 1:
        return
    opened, began = 0, time.perf_counter()
    for row in orders_of(client, oldest=oldest, newest=newest):
        codes = _codes_for_list(client, row)
        yield _show(row, codes)
        opened += len(codes)
        if opened >= CODES_AT_ONCE:
            time.sleep(min(REST_TIMES * (time.perf_counter() - began), LONGEST_REST))
            opened, began = 0, time.perf_counter()


def _codes_of(client: ApiClient, row: dict[str, Any]) -> list[dict[str, str]]:
    """The codes of the order; none for a top-up. Raises CannotOpen if they were changed."""
    if row["fulfilment_status"] is not None:
        return []
    return open_codes(
        client_id=client.pk,
        reference=row["reference"],
        stored_mac=row["codes_mac"],
        sealed_codes=row["sealed_codes"],
        digests=row["digests"],
    )


def _codes_for_list(client: ApiClient, row: dict[str, Any]) -> list[dict[str, str]]:
    """The codes of the order; none if they were changed, so that the rest of the page is shown."""
    try:
        return _codes_of(client, row)
    except UnknownKey:
        raise
    except CannotOpen:
        reference = row["reference"]
        order_secret(client_id=client.pk, reference=reference)  # raises if no order can be opened
        logger.error("order_codes_unopenable", order_reference=reference)
        return []


def _show(row: dict[str, Any], codes: list[dict[str, str]]) -> dict[str, Any]:
    """The order as the API shows it; `orders.schemas` describes it."""
    order = {
        "reference": row["reference"],
        "quantity": row["quantity"],
        "units": row["quantity"] // row["units_per_sale"],
        "units_per_sale": row["units_per_sale"],
        "unit_price": row["unit_price"],
        "total_price": row["total_price"],
        "currency": row["currency"],
        "created_at": row["created_at"],
    }
    if row["fulfilment_status"] is None:
        return {
            **order,
            "status": OrderStatus.COMPLETED,
            "product_id": row["product_id"],
            "variation_id": row["variation_id"],
            "merchant_reference": row["merchant_reference"],
            "codes": codes,
        }
    return {
        **order,
        "status": status_of_topup(row["fulfilment_status"]),
        "delivery_type": "top_up",
        "system_product_id": row["system_product_id"],
        "player_id": row["player_id"],
        "fulfilment_status": row["fulfilment_status"],
        "refunded": row["refunded"],
        "failure_reason": row["failure_reason"],
        "codes": codes,
    }
