"""An idempotency key that is sent many times at once buys once."""

import json
from collections import Counter
from functools import partial
from typing import Any

import pytest
from django.db import connection

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
from tests.factories import Merchant, make_client, make_merchant, make_product
from tests.live import API, live_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

REQUESTS = 48


def test_concurrent_requests_with_one_key_buy_once() -> None:
    merchant = make_merchant()
    product = make_product(codes=REQUESTS)

    answers = race(
        [partial(with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1)] * REQUESTS
    )

    assert_one_purchase(merchant, answers)


def test_concurrent_requests_over_the_network_buy_once() -> None:
    merchant = make_merchant(rate_limit_per_minute=100_000)
    product = make_product(codes=REQUESTS * 3)

    with live_server(API, workers=3) as server:
        merchant.http = server.http
        for key in ("one", "two", "three"):
            answers = race(
                [partial(merchant.buy, key, product_id=product.pk, quantity=1)] * REQUESTS
            )
            assert_one_purchase(merchant, answers)
            (last,) = race([partial(merchant.buy, key, product_id=product.pk, quantity=1)])
            assert outcome(last) == "replayed"


def assert_one_purchase(merchant: Merchant, answers: list[Any]) -> None:
    told = Counter(map(outcome, answers))
    assert told["bought"] == 1, told
    assert told.keys() <= {"bought", "replayed", "request_in_progress"}, told
    bodies = {answer.content for answer in answers if answer.status_code == 201}
    assert len(bodies) == 1
    reference = json.loads(bodies.pop())["data"]["reference"]
    debits = "SELECT count(*) FROM wallets_ledgerentry WHERE order_reference = %s"
    assert scalar(debits, reference) == 1
    keys = scalar("SELECT count(*) FROM idempotency_idempotencyrecord")
    assert scalar("SELECT count(*) FROM orders_order") == keys
    assert_books_balance()


def test_two_purchases_with_one_key_at_once_buy_one_of_them() -> None:
    merchant = make_merchant()
    product = make_product(codes=100)

    answers = race(
        [
            partial(
                with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1 + number % 2
            )
            for number in range(24)
        ]
    )

    told = Counter(map(outcome, answers))
    assert (told["bought"], told["idempotency_key_reused"]) == (1, 12)
    assert scalar("SELECT count(*) FROM orders_order") == 1
    assert_books_balance()


def test_a_request_that_waited_for_the_first_claim_of_its_key_reads_that_claim() -> None:
    merchant = make_merchant()
    product = make_product(codes=1)
    claim = (
        "INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt)"
        " VALUES (%s, 'one', sha256('another body'), 1)"
    )

    with holding_locks(claim, merchant.client.pk) as first:
        buy = partial(with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1)
        with in_background(buy) as second:
            wait_for_waiting()
            first.commit()

    assert outcome(second.result()) == "idempotency_key_reused"
    assert scalar("SELECT count(*) FROM orders_order") == 0
    assert_books_balance()


def test_two_clients_with_the_same_key_buy_both() -> None:
    merchant = make_merchant()
    other = Merchant(make_client(merchant.client.account))
    product = make_product(codes=2)

    answers = race(
        [
            partial(with_own_http(who).buy, "one", product_id=product.pk, quantity=1)
            for who in (merchant, other)
        ]
    )

    assert Counter(map(outcome, answers)) == {"bought": 2}
    assert_books_balance()


def test_a_key_refused_many_times_at_once_may_be_used_again() -> None:
    merchant = make_merchant(balance="1.00")
    product = make_product(price="9.99", codes=1)
    buy = partial(with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1)

    told = Counter(map(outcome, race([buy] * 24)))

    assert told.keys() <= {"insufficient_balance", "request_in_progress"}
    assert scalar("SELECT count(*) FROM idempotency_idempotencyrecord") == 0
    execute(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference)"
        " VALUES (%s, 'deposit', 'bank', 100, 0, 'test', 'more money')",
        merchant.client.account_id,
    )
    assert Counter(map(outcome, race([buy] * 24)))["bought"] == 1
    assert_books_balance()


def test_control_without_the_unique_constraint_it_buys_many_times() -> None:
    merchant = make_merchant()
    product = make_product(codes=8)
    unique = "idempotency_record_client_and_key"

    execute(f"ALTER TABLE idempotency_idempotencyrecord DROP CONSTRAINT {unique}")
    try:
        with weakened_sql(
            "idempotency/sql/claim.sql",
            (
                "VALUES (p_client, p_key, p_fingerprint, 1 + floor(random() * 1e9)::integer)\n"
                "            ON CONFLICT (client_id, key) DO NOTHING\n",
                "SELECT p_client, p_key, p_fingerprint, 1 FROM pg_sleep(1)\n",
            ),
        ):
            answers = race(
                [partial(with_own_http(merchant).buy, "one", product_id=product.pk, quantity=1)] * 8
            )
    finally:
        execute("DELETE FROM idempotency_idempotencyrecord")
        execute(
            f"ALTER TABLE idempotency_idempotencyrecord ADD CONSTRAINT {unique}"
            f" UNIQUE (client_id, {connection.ops.quote_name('key')})"
        )

    assert Counter(map(outcome, answers))["bought"] > 1
