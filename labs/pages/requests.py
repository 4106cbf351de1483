"""Times requests of the API of the client that has a third of all orders."""

import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.test import Client

from accounts.models import ApiClient
from labs.pages.report import Figures, Table
from orders.models import Order
from tests.factories import Merchant, make_product, make_topup_product

CALLS = 100


def time_requests(table: Table, size: int) -> None:
    """Makes each request CALLS times in the database with `size` orders, and notes the first time,
    the median, and the blocks that one reads. Keeps the lowest median of all rounds."""
    for name, request in requests().items():
        cache.clear()  # a client's requests are limited
        request()  # the connection plans its statements
        before, times = blocks_read(), []
        for _ in range(CALLS):
            start = time.perf_counter()
            answer = request()
            times.append(1000 * (time.perf_counter() - start))
            assert answer.status_code in {200, 201}, answer.content
        blocks = (blocks_read() - before) // CALLS
        median = statistics.median(times)
        known = table.setdefault(name, {}).setdefault(size, Figures(times[0], median, 0, blocks))
        known.best = min(known.best, median)


def requests() -> dict[str, Callable[[], Any]]:
    """The requests by their names."""
    merchant = Merchant(ApiClient.objects.get(pk=1), Client())
    voucher = {"product_id": make_product(codes=2 * CALLS, price="0.07").pk, "quantity": 1}
    topup = {"delivery_type": "top_up", "system_product_id": make_topup_product(price="0.07").pk}
    keys = map(str, iter(uuid.uuid4, None))
    replayed = str(uuid.uuid4())
    # The codes of the history cannot be opened, so the old order is a top-up.
    oldest = Order.objects.filter(client_id=1, fulfilment__isnull=False).earliest("id")
    return {
        "voucher purchase": lambda: merchant.buy(key=next(keys), **voucher),
        "top-up purchase": lambda: merchant.buy(key=next(keys), player_id="0012345", **topup),
        "replay": lambda: merchant.buy(key=replayed, **voucher),
        "oldest top-up": lambda: merchant.get(f"/orders/{oldest.reference}"),
        "newest page of orders": lambda: merchant.get("/orders"),
    }


def blocks_read() -> int:
    """The blocks that this database has read from its buffers and from files."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(
            "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[0])
