"""Reads of orders. Every one starts at `orders_of`: nobody sees another client's order."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from accounts.models import ApiClient
from catalogue.codes import open_code
from catalogue.models import VoucherCode
from catalogue.selectors import references_of
from config.api.pagination import Page
from config.errors import ApiError, ErrorCode
from orders.models import ClientCounter, Order
from topups.models import Fulfilment

REFERENCE_PATTERN = re.compile(r"[0-9A-Z]{26}")


def orders_of(client: ApiClient) -> QuerySet[Order]:
    """The orders bought by this client: the one function through which a client's order is read."""
    return Order.objects.filter(client=client)


def get_order(*, client: ApiClient, reference: str) -> dict[str, Any]:
    """One order. Raises `order_not_found`, the same for a foreign order as for an unknown one."""
    order = None
    if REFERENCE_PATTERN.fullmatch(reference):
        order = (
            orders_of(client)
            .select_related("shelf", "fulfilment")
            .filter(reference=reference)
            .first()
        )
    if order is None:
        raise ApiError(ErrorCode.ORDER_NOT_FOUND)
    return show_orders([order], client=client)[0]


def list_orders(*, client: ApiClient, page: Page) -> tuple[list[dict[str, Any]], int]:
    """One page of orders, newest first, and the total.

    Orders are numbered per client without gaps and never deleted, so the counter is the total and
    a page is a range of numbers: nothing is counted and nothing skipped.
    """
    counter = ClientCounter.objects.filter(client=client).first()
    total = counter.orders if counter else 0
    newest = total - page.offset
    rows = list(
        orders_of(client)
        .filter(number__gt=newest - page.per_page, number__lte=newest)
        .select_related("shelf", "fulfilment")
        .order_by("-number")
    )
    return show_orders(rows, client=client), total


def show_orders(orders: Sequence[Order], *, client: ApiClient) -> list[dict[str, Any]]:
    """Orders ready to serialize, with their codes; two queries whatever their number."""
    shelf_ids = [order.shelf_id for order in orders if order.shelf_id is not None]
    references = references_of(client.account, shelf_ids)
    codes = _codes_of(orders)
    return [
        _show_topup(order, order.fulfilment)
        if order.fulfilment is not None
        else _show_voucher(order, references, codes)
        for order in orders
    ]


def _show_voucher(
    order: Order, references: dict[int, str], codes: dict[int, list[dict[str, str]]]
) -> dict[str, Any]:
    assert order.shelf is not None  # noqa: S101  the database holds one of the two
    return {
        **_show_sale(order),
        "product_id": order.shelf.product_id,
        "variation_id": order.shelf.variation_id,
        "merchant_reference": references.get(order.shelf.pk),
        "codes": codes[order.pk],
    }


def _show_topup(order: Order, fulfilment: Fulfilment) -> dict[str, Any]:
    return {
        **_show_sale(order),
        "delivery_type": "top_up",
        "system_product_id": fulfilment.product_id,
        "player_id": fulfilment.player_id,
        "fulfilment_status": fulfilment.status,
        "refunded": fulfilment.refunded,
        "failure_reason": fulfilment.failure_reason,
        "codes": [],
    }


def _show_sale(order: Order) -> dict[str, Any]:
    """What both kinds of order show."""
    return {
        "reference": order.reference,
        "status": order.status,
        "quantity": order.quantity,
        "units": order.units,
        "units_per_sale": order.units_per_sale,
        "unit_price": order.unit_price,
        "total_price": order.total_price,
        "currency": order.currency,
        "created_at": order.created_at,
    }


def _codes_of(orders: Sequence[Order]) -> dict[int, list[dict[str, str]]]:
    codes: dict[int, list[dict[str, str]]] = defaultdict(list)
    with_codes = [order.pk for order in orders if order.shelf_id is not None]
    rows = VoucherCode.objects.filter(order_id__in=with_codes)
    for row in rows.order_by("order_id", "position"):
        codes[row.order_id or 0].append(open_code(row.sealed).shown())
    return codes
