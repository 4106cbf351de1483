"""The finders of `orders` for the search fields, for staff and for members of an account.

An order is found by its reference or a part of it, its idempotency key, or its player id. Nothing
here costs a purchase an index: docs/decisions/0056-search.md says what each look-up reads.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import F, Max, Q, QuerySet

from accounts.api_access.request_records import find_records
from accounts.models import Account, ApiClient, RequestRecord
from catalogue.models import Shelf
from core.backoffice.declarations import Finder
from core.backoffice.search import MAX_HITS, newest_first
from core.database.columns import ORDER_REFERENCE_LENGTH
from core.database.ids import MARGIN
from core.texts import lazy
from idempotency.models import IdempotencyRecord
from orders.account_orders import OrderList, number_since
from orders.models import ClientCounter, Order, OrderStatus
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment, FulfilmentStatus, TopUpProduct
from topups.search import with_player

PART = re.compile(rf"[0-9A-Z]{{4,{ORDER_REFERENCE_LENGTH}}}")
# Any part of a reference is looked for among this many of the newest orders. Older orders are found
# by the beginning of their reference.
NEWEST = 100_000
# The same for a member, and for idempotency keys: this many orders of the account, divided equally
# between its clients. With days, they are the newest of those days.
NEWEST_OF_ACCOUNT = 9_000
# A reference begins with its time, and this many characters name a second. The orders of one
# account are then looked for among all orders of that second.
TIME_LENGTH = 8
WITH_STATUS = {
    OrderStatus.COMPLETED: Q(fulfilment=None) | Q(fulfilment__status=FulfilmentStatus.COMPLETED),
    OrderStatus.PENDING: Q(fulfilment__status__in=OPEN),
    OrderStatus.FAILED: Q(fulfilment__status=FulfilmentStatus.FAILED),
}


@dataclass(frozen=True)
class Goods:
    """The ids of shelves and of top-up products."""

    shelves: frozenset[int]
    topups: frozenset[int]

    def __contains__(self, order: Order) -> bool:
        if order.fulfilment is not None:
            return order.fulfilment.product_id in self.topups
        return order.shelf_id in self.shelves


def find_goods(name: str) -> Goods:
    """The shelves and top-up products whose name contains this text, in any case."""
    shelves = Shelf.objects.filter(
        Q(product__name__icontains=name) | Q(variation__name__icontains=name)
    )
    topups = TopUpProduct.objects.filter(name__icontains=name)
    return Goods(*(frozenset(rows.values_list("pk", flat=True)) for rows in (shelves, topups)))


def list_orders_of_goods(
    goods: Goods,
    *,
    account: Account,
    client: ApiClient | None,
    status: OrderStatus | None,
    since: datetime | None,
    until: datetime | None,
) -> OrderList:
    """The orders of these goods among the newest of the account that match the rest: no index has
    goods. Created from `since` on and before `until`."""
    orders = Order.objects.filter(
        _newest_of(account, client, since, until),
        Q(shelf__in=goods.shelves) | Q(fulfilment__product__in=goods.topups),
    )
    if status is not None:
        orders = orders.filter(WITH_STATUS[status])
    if since is not None:
        orders = orders.filter(created_at__gte=since)
    if until is not None:
        orders = orders.filter(created_at__lt=until)
    found = list(orders.order_by(newest_first()).values_list("pk", flat=True))
    rows = Order.objects.filter(pk__in=found)
    return OrderList(rows, "pk", "reference", F("total_price"))


def find_orders(
    text: str,
    *,
    account: Account | None = None,
    limit: int = MAX_HITS,
    client: ApiClient | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> list[Order]:
    """The newest orders that match, of all accounts or of one.

    For an account, `client` and the times say which orders are read for what no index finds. Orders
    found by an index may be of other clients and times; the caller filters them.
    """
    orders = Order.objects.all()
    newest = None
    if account is not None:
        orders = orders.filter(client__account=account)
        newest = _newest_of(account, client, since, until)
    by_value = {
        *_references_by_key(text, account, newest, limit),
        *_for_player(text, account, limit),
    }
    found = {*orders.filter(reference__in=by_value).values_list("pk", flat=True)}
    part = text.upper()
    if PART.fullmatch(part):
        by_reference: list[int] = []
        if account is None or len(part) >= TIME_LENGTH:
            by_reference = list(_filter_by_beginning(orders, part)[:limit])
        found.update(by_reference or _newest_with(part, newest)[:limit])
    # Clients and products are joined last, only to the orders that were found.
    shown = orders.filter(pk__in=found).select_related(
        "client__account", "shelf__product", "shelf__variation__product", "fulfilment__product"
    )
    return list(shown.order_by("-pk")[:limit])


def _filter_by_beginning(orders: QuerySet[Order], part: str) -> QuerySet[Order, int]:
    """All references have the same length, so those with one beginning are a range."""
    first, last = part.ljust(ORDER_REFERENCE_LENGTH, "0"), part.ljust(ORDER_REFERENCE_LENGTH, "Z")
    some = orders.filter(reference__range=(first, last)).order_by("-reference")
    return some.values_list("pk", flat=True)


def _newest_with(part: str, newest: Q | None) -> QuerySet[Order, int]:
    """The orders among the newest whose references contain this part."""
    recent = _newest() if newest is None else newest
    containing = Order.objects.filter(recent, reference__contains=part)
    return containing.order_by(newest_first()).values_list("pk", flat=True)


def _newest() -> Q:
    newest = Order.objects.aggregate(newest=Max("pk"))["newest"] or 0
    return Q(pk__gt=newest - NEWEST)


def _newest_of(
    account: Account, client: ApiClient | None, since: datetime | None, until: datetime | None
) -> Q:
    """The newest orders of the time, of one client or of each client of the account: ranges of an
    index, by number."""
    counters = ClientCounter.objects.filter(client__account=account)
    if client is not None:
        counters = counters.filter(client=client)
    counts = list(counters.values_list("client", "orders"))
    ranges = Q(pk=None)  # nothing, if no client has an order
    for one, orders in counts:
        end = orders + 1 if until is None else number_since(one, until + MARGIN)
        first = 1 if since is None else number_since(one, since - MARGIN)
        first = max(first, end - NEWEST_OF_ACCOUNT // len(counts))
        ranges |= Q(client=one, number__gte=first, number__lt=end)
    return ranges


def days_found_by_key() -> int:
    """The days for which an index finds an order by its idempotency key: as long as one of the
    tables that `_references_by_key` reads keeps the key. Older orders are found only among the
    newest."""
    of_requests: int = settings.RETENTION_DAYS["requests"]
    of_keys: int = settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS
    return max(of_requests, of_keys)


def _references_by_key(
    key: str, account: Account | None, newest: Q | None, limit: int
) -> Iterable[str]:
    """The references of orders that were bought with this idempotency key."""
    clients = ApiClient.objects.all()
    requests = RequestRecord.objects.exclude(order_reference=None)
    if account is not None:
        clients, requests = clients.filter(account=account), requests.filter(account=account)
    if newest is not None:
        orders = Order.objects.filter(newest, idempotency_key=key)
        yield from orders.order_by(newest_first()).values_list("reference", flat=True)[:limit]
    # A record is unique by client and key: one look-up for each client.
    records = IdempotencyRecord.objects.filter(client__in=clients, key=key)
    attempts = find_records(requests, key).order_by(newest_first())
    for rows in (records.exclude(order_reference=None), attempts):
        yield from filter(None, rows.values_list("order_reference", flat=True)[:limit])


def _for_player(player_id: str, account: Account | None, limit: int) -> Iterable[str]:
    """The references of top-ups for this player id."""
    rows = Fulfilment.objects.all()
    if account is not None:
        rows = rows.filter(account=account)
    newest = with_player(rows, player_id).order_by(newest_first())
    return newest.values_list("order_reference", flat=True)[:limit]


def _describe(order: Order) -> tuple[str, str]:
    sold = order.shelf if order.fulfilment is None else order.fulfilment.product
    owner = order.client.account or order.client
    return order.reference, f"{sold}, {owner}, {order.status.label}"


FINDERS = [
    # Staff who may view an order need no second link to its top-up at the desk.
    Finder(
        lazy("Order"), Order, find_orders, _describe, of_account=find_orders, replaces=Fulfilment
    )
]
