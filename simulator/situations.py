"""Puts the service into a situation for one request, and out of it afterwards.

The service itself then answers. Only the data of the simulated shop changes, by the services of the
product where they exist.
"""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from accounts.models import ApiClient, ApiKey
from catalogue.models import Product, Shelf
from catalogue.selectors import products_on_sale
from catalogue.stock.holds import hold_codes, release_hold
from idempotency.cleanup import cleanup_records
from idempotency.models import IdempotencyRecord
from simulator.faults import Fault
from topups.models import TopUpProduct
from wallets.models import Wallet
from wallets.services import deposit, pay_out

ACTOR = "simulator"
WALLET_SECONDS = 3.0
HIGHER = F("price") + Decimal("0.05")
# One situation at a time: it concerns the whole shop.
_turn = threading.Lock()


@contextmanager
def situation(fault: Fault, client: ApiClient) -> Iterator[None]:
    """The block is one request of the client."""
    put = SITUATIONS.get(fault)
    if put is None:
        yield
        return
    with _turn, put(client):
        yield


@contextmanager
def _values(rows: QuerySet[Any], **values: Any) -> Iterator[None]:
    """These rows with other values."""
    before = list(rows.values("pk", *values))
    rows.update(**values)
    try:
        yield
    finally:
        for row in before:
            rows.model.objects.filter(pk=row.pop("pk")).update(**row)


@contextmanager
def _both(
    first: AbstractContextManager[None], second: AbstractContextManager[None]
) -> Iterator[None]:
    with first, second:
        yield


def _client(client: ApiClient, **values: Any) -> AbstractContextManager[None]:
    return _values(ApiClient.objects.filter(pk=client.pk), **values)


@contextmanager
def _out_of_stock(client: ApiClient) -> Iterator[None]:
    hold, _ = hold_codes(codes=Q(), reason="simulated", held_by=ACTOR)
    try:
        with _values(TopUpProduct.objects.all(), available_stock=0):
            yield
    finally:
        if hold:
            release_hold(hold.pk)


@contextmanager
def _out_of_balance(client: ApiClient) -> Iterator[None]:
    wallet = Wallet.objects.get(pk=client.account_id)
    amount = wallet.balance
    book: dict[str, Any] = {"account": wallet.account, "amount": amount, "actor": ACTOR}
    if amount > 0:
        pay_out(**book, booking_reference=f"simulated {secrets.token_hex(8)}")
    try:
        yield
    finally:
        if amount > 0:
            deposit(**book, booking_reference=f"simulated {secrets.token_hex(8)}")


def _key_expired(client: ApiClient) -> AbstractContextManager[None]:
    past = timezone.now() - timedelta(minutes=1)
    return _values(ApiKey.objects.filter(client=client), expires_at=past)


SITUATIONS: dict[Fault, Callable[[ApiClient], AbstractContextManager[None]]] = {
    Fault.OUT_OF_STOCK: _out_of_stock,
    Fault.OUT_OF_BALANCE: _out_of_balance,
    Fault.PRICE_GONE: lambda client: _both(
        _values(Shelf.objects.all(), price=None),
        _values(TopUpProduct.objects.all(), currency="XTS"),  # its price is never empty
    ),
    Fault.PRICE_CHANGED: lambda client: _both(
        _values(Shelf.objects.all(), price=HIGHER),
        _values(TopUpProduct.objects.all(), price=HIGHER),
    ),
    Fault.SWITCHED_OFF: lambda client: _both(
        _values(Product.objects.all(), active=False),
        _values(TopUpProduct.objects.all(), active=False),
    ),
    Fault.NOT_ALLOWED: lambda client: _client(client, allowed_networks=["203.0.113.1/32"]),
    Fault.CLIENT_DISABLED: lambda client: _client(client, enabled=False),
    Fault.KEY_EXPIRED: _key_expired,
    Fault.RATE_LIMITED: lambda client: _client(client, rate_limit_per_minute=1),
    Fault.ONE_SWITCHED_OFF: lambda client: _values(
        Product.objects.filter(pk__in=products_on_sale().order_by("pk").values("pk")[:1]),
        active=False,
    ),
}


def hold_wallet(client: ApiClient, locked: threading.Event) -> None:
    """Keeps every purchase of the account waiting for a few seconds. Runs in a thread."""
    try:
        with transaction.atomic():
            Wallet.objects.select_for_update().get(pk=client.account_id)
            locked.set()
            threading.Event().wait(WALLET_SECONDS)
    finally:
        locked.set()
        connection.close()


def has_claimed(client: ApiClient, key: str) -> bool:
    """Whether the service has begun a purchase with this idempotency key."""
    return IdempotencyRecord.objects.filter(client=client, key=key).exists()


def abandon(client: ApiClient, key: str) -> None:
    """The state that a crash after the commit leaves: an order, and no stored response."""
    long_ago = timezone.now() - timedelta(minutes=10)
    records = IdempotencyRecord.objects.filter(client=client, key=key)
    records.exclude(order_reference=None).update(response=None, started_at=long_ago)


def pass_time(client: ApiClient, passed: timedelta) -> None:
    """Makes what the service remembers of the client's requests older, and deletes what expires.

    The clock itself stays: only idempotency keys and API keys of a merchant know how old they are.
    """
    times = ("created_at", "started_at", "bought_at")
    IdempotencyRecord.objects.filter(client=client).update(
        **{name: F(name) - passed for name in times}
    )
    ApiKey.objects.filter(client=client).update(expires_at=F("expires_at") - passed)
    cleanup_records()
