"""Situations that contract tests start from, and helpers that read responses."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet

from catalogue.models import Product, Shelf, VoucherCode
from core.database.sealing import sealing_key_id
from idempotency.models import IdempotencyRecord
from orders.models import Order
from tests.answers import read_json
from tests.concurrency.racing import without_triggers
from tests.factories import NEIGHBOUR, Merchant, make_merchant, make_product
from tests.neighbour import ours
from wallets.models import LedgerEntry, Wallet

WINDOW = timedelta(minutes=5)


@dataclass(frozen=True)
class Shop:
    """A merchant with a balance, and a product with codes."""

    merchant: Merchant
    product: Product

    def buy(self, key: str | None = None, **body: Any) -> Any:
        """Buys one code by default. A field with the value `...` is left out of the body."""
        wanted = {"product_id": self.product.pk, "quantity": 1, **body}
        wanted = {name: value for name, value in wanted.items() if value is not ...}
        return self.merchant.buy(key, **wanted)


def make_shop(*, balance: str = "100.00", codes: int = 5, **product: Any) -> Shop:
    return Shop(make_merchant(balance=balance), make_product(codes=codes, **product))


def data(answer: Any) -> Any:
    """The `data` of a success, with exact decimals."""
    body = read_json(answer.content)
    assert body["success"] is True, body
    return body["data"]


def error(answer: Any) -> Any:
    """The `error` of a failure."""
    body = read_json(answer.content)
    assert body["success"] is False, body
    return body["error"]


def refusal(answer: Any) -> tuple[int, str, str | None]:
    """Status, code and reason of a failure."""
    found = error(answer)
    return answer.status_code, found["code"], found.get("reason")


def message(answer: Any) -> tuple[int, list[str]]:
    """Status and member names of a response from before the API."""
    return answer.status_code, list(json.loads(answer.content))


@dataclass(frozen=True)
class Money:
    """Everything a purchase may change, summed over all that the test made. `elsewhere` is the
    balance of the neighbour, which no purchase may change."""

    elsewhere: Decimal
    balance: Decimal
    entries: int
    orders: int
    stock: int
    unsold: int
    records: int


def money() -> Money:
    """The current sums. Two of them are equal when nothing was bought in between."""
    return Money(
        elsewhere=_sum(Wallet.objects.filter(account__name=NEIGHBOUR)),
        balance=_sum(ours(Wallet)),
        entries=ours(LedgerEntry).count(),
        orders=ours(Order).count(),
        stock=sum(ours(Shelf).values_list("available_stock", flat=True)),
        unsold=ours(VoucherCode).filter(order_id=None).count(),
        records=ours(IdempotencyRecord).count(),
    )


def _sum(wallets: QuerySet[Wallet]) -> Decimal:
    return sum(wallets.values_list("balance", flat=True), Decimal())


@contextmanager
def unreadable_codes(product: Product) -> Iterator[None]:
    """Damages the codes, so a purchase fails after its commit and its response is lost."""
    codes = VoucherCode.objects.filter(shelf__product=product)
    sealed = dict(codes.values_list("pk", "sealed"))
    key = bytes([sealing_key_id()])  # codes of an unknown key would be refused before the commit
    seal = "UPDATE catalogue_vouchercode SET sealed = %s WHERE id = ANY (%s)"
    without_triggers(seal, key + b"damaged", list(sealed))
    yield
    for pk, value in sealed.items():
        without_triggers(seal, bytes(value), [pk])


@contextmanager
def orders_cannot_be_written() -> Iterator[None]:
    """Makes the insert of an order fail, so a purchase fails before its commit."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION tests_fail() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'orders cannot be written'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER tests_fail BEFORE INSERT ON orders_order"
            " FOR EACH ROW EXECUTE FUNCTION tests_fail()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION tests_fail() CASCADE")


def lose_answer(shop: Shop, key: str, **body: Any) -> None:
    """Makes a purchase under `key` that is committed, but whose response is lost."""
    with unreadable_codes(shop.product):
        assert refusal(shop.buy(key, **body)) == (500, "server_error", None)


def fail_before_commit(shop: Shop, key: str, **body: Any) -> None:
    """Makes a purchase under `key` that fails before its commit."""
    with orders_cannot_be_written():
        assert refusal(shop.buy(key, **body)) == (500, "server_error", None)


def age_records(age: timedelta) -> None:
    """Makes every idempotency record of the test older by `age`."""
    ours(IdempotencyRecord).update(
        created_at=F("created_at") - age,
        started_at=F("started_at") - age,
        bought_at=F("bought_at") - age,
    )
