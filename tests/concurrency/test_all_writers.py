"""All writers at once on the same shelves and wallets cause no deadlock and keep sums exact."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial

import pytest

from accounts.models import Account
from catalogue.models import Shelf
from config.inputs import InputProblem
from idempotency.cleanup import cleanup_records
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import execute, outcome, race, scalar, with_own_http
from tests.factories import (
    Merchant,
    add_codes,
    adjust,
    deposit,
    make_account,
    make_client,
    make_product,
    make_variation,
    own_shelf,
)

pytestmark = pytest.mark.django_db(transaction=True)

PURCHASES = 20
EXPECTED = {
    "bought",
    "replayed",
    "request_in_progress",
    "idempotency_key_reused",
    "insufficient_stock",
    "insufficient_balance",
}


def test_all_writers_at_once() -> None:
    accounts = [make_account(balance="40.00") for _ in range(3)]
    merchants = [Merchant(make_client(account)) for account in accounts for _ in range(2)]
    products = [make_product(price="1.00", codes=5) for _ in range(3)]
    shelves = [own_shelf(product) for product in products]
    shelves += [Shelf.objects.get(variation=make_variation(products[0], price="2.00", codes=10))]
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = scalar(deadlocks)
    done = threading.Event()

    told = Counter(
        one
        for each in race(
            [
                *[partial(_buy_at_random, n, merchants, shelves, done) for n in range(8)],
                partial(_until, done, partial(_import_codes, shelves)),
                partial(_until, done, partial(_import_codes, shelves[::-1])),
                partial(_until, done, partial(_edit_prices, shelves)),
                partial(_until, done, partial(_edit_prices, shelves[::-1])),
                partial(_until, done, partial(_move_money, accounts)),
                partial(_until, done, cleanup_records),
            ]
        )
        for one in each
    )

    assert told.keys() <= EXPECTED, told
    assert told["bought"] == scalar("SELECT count(*) FROM orders_order") > 20
    assert told["insufficient_stock"] + told["insufficient_balance"] > 0, told
    execute("SELECT pg_stat_force_next_flush()")
    assert scalar(deadlocks) == before
    assert_books_balance()


def _buy_at_random(
    number: int, merchants: list[Merchant], shelves: list[Shelf], done: threading.Event
) -> list[str]:
    chance = random.Random(number)
    told = []
    for step in range(PURCHASES):
        merchant, shelf = with_own_http(chance.choice(merchants)), chance.choice(shelves)
        answer = merchant.buy(
            f"key {step // 4}" if chance.random() < 0.3 else None,
            product_id=shelf.product_id,
            variation_id=shelf.variation_id,
            quantity=chance.choice([1, 1, 2, 5]),
        )
        told.append(outcome(answer))
    done.set()
    return told


def _until(done: threading.Event, work: Callable[[], object]) -> list[str]:
    while not done.wait(0.02):
        work()
    return []


def _import_codes(shelves: list[Shelf]) -> None:
    for shelf in shelves:
        with suppress(InputProblem):  # the other import is running
            add_codes(shelf, 2)


def _edit_prices(shelves: list[Shelf]) -> None:
    """Edits like Django admin: reads a row and saves all of its columns later."""
    for shelf in shelves:
        edited = Shelf.objects.get(pk=shelf.pk)
        edited.price = Decimal(random.randint(50, 200)) / 100
        edited.save()


def _move_money(accounts: list[Account]) -> None:
    for account in accounts:
        deposit(account=account, amount=Decimal("5.00"), actor="test")
        adjust(account=account, amount=Decimal("-0.01"), actor="test", note="fee")
