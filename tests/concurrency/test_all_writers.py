"""All writers at once on the same shelves and wallets cause no deadlock and keep sums exact."""

import base64
import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError
from pytest_django import Settings

from accounts.models import Account
from catalogue.models import Shelf, VoucherCode
from core.inputs import InputProblem
from idempotency.cleanup import cleanup_records
from operators.imports.catalogue_file import import_rows
from operators.upkeep.reconcile import reconcile
from operators.upkeep.reseal import reseal_all
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    execute,
    holding_locks,
    in_background,
    outcome,
    race,
    scalar,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.factories import (
    Merchant,
    add_codes,
    adjust,
    deposit,
    make_account,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
    own_shelf,
)
from topups.fulfilment.fulfilments import Operator
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import TopUpProduct

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

PURCHASES = 20
EXPECTED = {
    "bought",
    "replayed",
    "request_in_progress",
    "idempotency_key_reused",
    "insufficient_stock",
    "insufficient_balance",
}


def two_keys(settings: Settings) -> None:
    """A new encryption key in front of the old one."""
    new = "2:" + base64.urlsafe_b64encode(os.urandom(32)).decode()
    settings.CODE_ENCRYPTION_KEYS = [new, *settings.CODE_ENCRYPTION_KEYS]


def test_all_writers_at_once(settings: Settings) -> None:
    two_keys(settings)
    settings.PRICE_FALL_PERCENT = 99  # imports set random prices without a second person
    accounts = [make_account(balance="40.00") for _ in range(3)]
    merchants = [Merchant(make_client(account)) for account in accounts for _ in range(2)]
    products = [make_product(price="1.00", codes=5) for _ in range(3)]
    shelves = [own_shelf(product) for product in products]
    shelves += [Shelf.objects.get(variation=make_variation(products[0], price="2.00", codes=10))]
    topup_products = [make_topup_product(price="1.50", available_stock=20) for _ in range(2)]
    operator = make_operator()
    before = deadlocks()
    done = threading.Event()

    told = Counter(
        one
        for each in race(
            [
                *[partial(_buy_at_random, n, merchants, shelves, done) for n in range(8)],
                partial(_until, done, partial(_fail_topups, merchants, topup_products, operator)),
                partial(_until, done, sweep_refunds),
                partial(_until, done, sweep_refunds),
                partial(_until, done, _reseal),
                partial(_until, done, partial(_import_catalogue, shelves, topup_products)),
                partial(_until, done, partial(_import_catalogue, shelves[::-1], topup_products)),
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
    bought = "SELECT count(*) FROM orders_order WHERE shelf_id IS NOT NULL"
    assert told["bought"] == scalar(bought) > 20
    assert told["insufficient_stock"] + told["insufficient_balance"] > 0, told
    sweep_refunds()
    assert scalar("SELECT count(*) FROM wallets_ledgerentry WHERE kind = 'refund'") > 0
    assert deadlocks() == before
    assert_books_balance()
    assert reconcile(decrypt=True)["findings"] == []


def test_a_purchase_and_reseal_lock_codes_in_the_same_order(settings: Settings) -> None:
    before = deadlocks()

    assert _purchase_meets_reseal(settings) == (
        "bought",
        {
            "second_factors": 0,
            "codes": 2,
            "replays": 0,
            "case_files": 0,
            "delivery_files": 0,
            "file_imports": 0,
            "file_parts": 0,
            "prepared_files": 0,
            "prepared_parts": 0,
        },
    )

    assert deadlocks() == before
    assert_books_balance()


def test_control_in_the_reverse_order_they_deadlock(settings: Settings) -> None:
    before = deadlocks()
    reverse = ("ORDER BY position\n                    LIMIT", "ORDER BY position DESC LIMIT")

    # PostgreSQL ends one of the two: `reseal` raises, or the purchase is repeated.
    with weakened_sql("catalogue/sql/take_codes.sql", reverse), suppress(OperationalError):
        assert _purchase_meets_reseal(settings)[0] == "bought"

    assert deadlocks() == before + 1
    assert_books_balance()


def _purchase_meets_reseal(settings: Settings) -> tuple[str, dict[str, int]]:
    """`reseal` waits for the first of two codes; a purchase of both comes next; both go on."""
    merchant, product = make_merchant(), make_product(codes=2)
    two_keys(settings)
    first = VoucherCode.objects.order_by("position")[0]
    with (
        holding_locks(
            "SELECT FROM catalogue_vouchercode WHERE id = %s FOR UPDATE", first.pk
        ) as lock,
        in_background(reseal_all) as resealing,
    ):
        wait_for_waiting(1)
        buy = partial(with_own_http(merchant).buy, product_id=product.pk, quantity=2)
        with in_background(buy) as buying:
            wait_for_waiting(2)
            lock.rollback()
        answer = outcome(buying.result())
    return answer, resealing.result()


def deadlocks() -> int:
    """How many deadlocks PostgreSQL has ended in this database."""
    execute("SELECT pg_stat_force_next_flush()")
    counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return int(scalar(counted))


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


def _fail_topups(
    merchants: list[Merchant], products: list[TopUpProduct], operator: Operator
) -> None:
    """Buys top-ups and rejects them, so that refunds are due all the time."""
    for merchant, product in zip(merchants, products * len(merchants), strict=False):
        answer = with_own_http(merchant).buy(
            delivery_type="top_up", system_product_id=product.pk, player_id="007"
        )
        if answer.status_code == 201:
            reference = answer.json()["data"]["reference"]
            move_now(reference=reference, move=Move.REJECT, operator=operator)


def _reseal() -> None:
    """Puts the other key in front, as the next phase of a rotation does, and reseals."""
    django_settings.CODE_ENCRYPTION_KEYS = django_settings.CODE_ENCRYPTION_KEYS[::-1]
    reseal_all()


def _import_catalogue(shelves: list[Shelf], topup_products: list[TopUpProduct]) -> None:
    """A file with new prices for every product, in this order."""

    def price() -> str:
        return str(Decimal(random.randint(50, 200)) / 100)

    own = [shelf for shelf in shelves if shelf.variation_id is None]
    products = [
        {"id": shelf.product_id, "name": "New", "currency": "USD", "price": price()}
        for shelf in own
    ]
    topups = [
        {"id": product.pk, "name": "Gems", "currency": "USD", "price": price()}
        for product in topup_products
    ]
    import_rows({"products": products, "topup_products": topups}, actor="test")


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
