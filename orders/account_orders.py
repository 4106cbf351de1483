"""Orders of all clients of an account, as the merchant site shows them to members: without codes.

Nothing here reads codes, sealed or open. Only the client that bought them may read them.

A page costs the same however many orders there are, because each list is read through rows that are
already in order: the ledger (each order has one entry), the numbers of one client's orders, or, for
pending and failed orders, the fulfilments of the account.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import Combinable

from accounts.models import Account, ApiClient
from core.database.ids import find_id_in
from orders.models import Order, OrderStatus
from orders.selectors import REFERENCE_PATTERN
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus
from wallets.models import OF_ORDERS
from wallets.selectors import MARGIN, entries_of

CHUNK = 500  # orders per query of an export


@dataclass(frozen=True)
class OrderList:
    """Rows that each name one order in `reference_field`, to be paged by `key`, newest first.

    The rows are orders, ledger entries or fulfilments. `price` is what each order cost.
    """

    rows: QuerySet[Any]
    key: str
    reference_field: str
    price: Combinable

    def orders(self, rows: Iterable[Any]) -> list[Order]:
        """The orders that these rows name, in the order of the rows."""
        references = [getattr(row, self.reference_field) for row in rows]
        orders = {order.reference: order for order in _orders().filter(reference__in=references)}
        return [orders[reference] for reference in references]


def list_account_orders(
    account: Account,
    *,
    client: ApiClient | None = None,
    status: OrderStatus | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> OrderList:
    """The orders of the account, optionally of one client and with one status, created from
    `since` on and before `until`. Raises ValueError for a client of another account."""
    if client is not None and client.account_id != account.pk:
        raise ValueError("the client belongs to another account")
    if status in (OrderStatus.PENDING, OrderStatus.FAILED):
        topups = _topups(account, client, status, since, until)
        return OrderList(topups, "pk", "order_reference", F("order__total_price"))
    if client is not None:
        rows = _client_orders(client, status, since, until)
        return OrderList(rows, "number", "reference", F("total_price"))
    debits = entries_of(account, since=since, until=until).filter(kind__in=OF_ORDERS)
    if status is OrderStatus.COMPLETED:
        unfinished = Fulfilment.objects.exclude(status=FulfilmentStatus.COMPLETED)
        debits = debits.exclude(
            Exists(unfinished.filter(order_reference=OuterRef("order_reference")))
        )
    return OrderList(debits, "pk", "order_reference", -F("amount"))


def read_orders(orders: OrderList) -> Iterator[Order]:
    """All orders of the list, newest first, in bounded memory.

    Each chunk is a query of its own, so a slow download holds no cursor and no transaction open.
    """
    rows, key = orders.rows.order_by(f"-{orders.key}"), orders.key
    chunk = list(rows[:CHUNK])
    while chunk:
        yield from orders.orders(chunk)
        chunk = list(rows.filter(**{f"{key}__lt": getattr(chunk[-1], key)})[:CHUNK])


def find_by_reference(references: Iterable[str | None]) -> dict[str, Order]:
    """The orders with these references. The caller knows that they belong to the account."""
    wanted = {reference for reference in references if reference}
    return {order.reference: order for order in _orders().filter(reference__in=wanted)}


def find_account_order(account: Account, reference: str) -> Order | None:
    """One order of the account; None for an order of another account, as for an unknown one."""
    if not REFERENCE_PATTERN.fullmatch(reference):
        return None
    return _orders().filter(reference=reference, client__account=account).first()


def count_open_topups(account: Account) -> int:
    """The number of top-ups of the account that have not ended yet."""
    return Fulfilment.objects.filter(account=account, status__in=OPEN).count()


def _orders() -> QuerySet[Order]:
    return Order.objects.select_related(
        "client", "shelf__product", "shelf__variation__product", "fulfilment__product"
    )


def _topups(
    account: Account,
    client: ApiClient | None,
    status: OrderStatus,
    since: datetime | None,
    until: datetime | None,
) -> QuerySet[Fulfilment]:
    """The fulfilments of pending or failed orders; only top-ups have these statuses."""
    of_account = Fulfilment.objects.filter(account=account)
    if status is OrderStatus.PENDING:
        rows = of_account.filter(status__in=OPEN)
    else:
        rows = of_account.filter(status=FulfilmentStatus.FAILED)
    if client is not None:
        rows = rows.filter(order__client=client)
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    return rows


def _client_orders(
    client: ApiClient, status: OrderStatus | None, since: datetime | None, until: datetime | None
) -> QuerySet[Order]:
    rows = Order.objects.filter(client=client)
    if status is OrderStatus.COMPLETED:
        rows = rows.filter(Q(fulfilment=None) | Q(fulfilment__status=FulfilmentStatus.COMPLETED))
    if since is not None:
        rows = rows.filter(
            number__gte=number_since(client.pk, since - MARGIN), created_at__gte=since
        )
    if until is not None:
        rows = rows.filter(number__lt=number_since(client.pk, until + MARGIN), created_at__lt=until)
    return rows


def number_since(client_id: int, moment: datetime) -> int:
    """The number of a client's first order near or after a moment, by a binary search over the
    numbers (about twenty reads of an index).

    Numbers have no gaps. They are in the order of time, except within the length of a transaction.
    """
    numbers = "SELECT number AS id, created_at FROM orders_order WHERE client_id = "
    return find_id_in(f"({numbers}{client_id:d}) AS numbers", moment)
