"""Orders of all clients of one account, for its people: what was bought, never the codes.

Nothing here reads a code, sealed or open: a page has no business with them, and whoever may see the
page is not the client that bought.

An account's orders are found through what is in order already, so that a page costs the same
however many there are: by its ledger, where each order is one debit; by a client's numbers; or, for
what is open or failed, by the account's fulfilments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import Account, ApiClient
from config.database.functions import query, statement_timeout
from orders.models import ClientCounter, Order, OrderStatus
from orders.selectors import REFERENCE_PATTERN
from topups.models import Fulfilment, FulfilmentStatus
from topups.transitions import OPEN
from wallets.models import EntryKind
from wallets.selectors import MARGIN, entries_of

SPEND_TIMEOUT_SECONDS = 5


@dataclass(frozen=True)
class OrderList:
    """Rows that name one order each by `reference_field`, to be paged by `key`, newest first."""

    rows: QuerySet[Any]
    key: str
    reference_field: str

    def orders(self, rows: Iterable[Any]) -> list[Order]:
        """The orders that these rows name, in their order."""
        references = [getattr(row, self.reference_field) for row in rows]
        found = {order.reference: order for order in _shown().filter(reference__in=references)}
        return [found[reference] for reference in references]


def list_account_orders(
    account: Account,
    *,
    client: ApiClient | None = None,
    status: OrderStatus | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> OrderList:
    """The orders of the account's clients, or of this one of them, with this status, made from
    `since` on and before `until`."""
    if client is not None and client.account_id != account.pk:
        raise ValueError("a client of another account")
    if status in (OrderStatus.PENDING, OrderStatus.FAILED):
        return OrderList(_topups(account, client, status, since, until), "pk", "order_reference")
    if client is not None:
        return OrderList(_of_client(client, status, since, until), "number", "reference")
    debits = entries_of(account, kind=EntryKind.PURCHASE, since=since, until=until)
    if status is OrderStatus.COMPLETED:
        unfinished = Fulfilment.objects.exclude(status=FulfilmentStatus.COMPLETED)
        debits = debits.exclude(
            Exists(unfinished.filter(order_reference=OuterRef("order_reference")))
        )
    return OrderList(debits, "pk", "order_reference")


def find_account_order(account: Account, reference: str) -> Order | None:
    """One order of the account's clients; None for another's as for one that does not exist."""
    if not REFERENCE_PATTERN.fullmatch(reference):
        return None
    return _shown().filter(reference=reference, client__account=account).first()


def count_open_topups(account: Account) -> int:
    """How many of the account's top-ups wait for their operators."""
    return Fulfilment.objects.filter(account=account, status__in=OPEN).count()


@dataclass(frozen=True)
class Spend:
    """What one day's orders of one product cost."""

    day: date
    product: str
    orders: int
    amount: Decimal


def spend_of_account(account: Account, *, since: datetime) -> list[Spend]:
    """What was spent from this moment on, by day (UTC) and product. Raises StatementTimeout.

    It costs as much as there are orders since then, so keep that close.
    """
    with statement_timeout(SPEND_TIMEOUT_SECONDS):
        rows = query("orders_spend_of_account", account.pk, since, since - MARGIN)
    return [Spend(**row) for row in rows]


def _shown() -> QuerySet[Order]:
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
    """Only top-ups are ever pending or failed."""
    of_account = Fulfilment.objects.filter(account=account)
    if status is OrderStatus.PENDING:
        found = of_account.filter(status__in=OPEN)
    else:
        found = of_account.filter(status=FulfilmentStatus.FAILED)
    if client is not None:
        found = found.filter(order__client=client)
    if since is not None:
        found = found.filter(created_at__gte=since)
    if until is not None:
        found = found.filter(created_at__lt=until)
    return found


def _of_client(
    client: ApiClient, status: OrderStatus | None, since: datetime | None, until: datetime | None
) -> QuerySet[Order]:
    found = Order.objects.filter(client=client)
    if status is OrderStatus.COMPLETED:
        found = found.filter(Q(fulfilment=None) | Q(fulfilment__status=FulfilmentStatus.COMPLETED))
    if since is not None:
        found = found.filter(
            number__gte=_number_since(client, since - MARGIN), created_at__gte=since
        )
    if until is not None:
        found = found.filter(number__lt=_number_since(client, until + MARGIN), created_at__lt=until)
    return found


def _number_since(client: ApiClient, moment: datetime) -> int:
    """The number of a client's first order from this moment on, by some twenty looks at an index:
    numbers have no gaps, and are in the order of time but for the length of a transaction."""
    counter = ClientCounter.objects.filter(client=client).first()
    numbers = range(1, (counter.orders if counter else 0) + 1)
    made_at = Order.objects.filter(client=client).values_list("created_at", flat=True)
    return bisect_left(numbers, moment, key=lambda number: made_at.get(number=number)) + 1
