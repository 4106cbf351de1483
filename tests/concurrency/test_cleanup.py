"""Cleanup forgets old keys; it never forgets the key of a purchase that is under way."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.conf import settings

from config.api.errors import ApiError, ErrorCode
from idempotency.cleanup import cleanup_records
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    age_records,
    held_wallet,
    in_background,
    of_own,
    outcome,
    race,
    rows,
    scalar,
    wait_for_waiting,
    without,
)
from tests.concurrency.test_takeover import Attempt
from tests.factories import make_merchant, make_product

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400
UNFINISHED = settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS * DAY + 1
COMPLETED = settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS * DAY + 1


def test_the_record_of_a_purchase_in_the_middle_is_passed_over() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    with held_wallet(merchant) as wallet, in_background(attempt.go_on) as purchase:
        wait_for_waiting(1)
        assert cleanup_records() == 0
        wallet.rollback()
        assert purchase.result() == "bought"

    retry = merchant.buy("one", product_id=product.pk, quantity=1)
    assert outcome(retry) == "request_abandoned"
    assert_books_balance()


def test_a_purchase_whose_record_was_cleaned_away_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    assert cleanup_records() == 1

    assert attempt.go_on() == "request_in_progress"
    assert rows("SELECT id FROM orders_order") == []
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
    assert attempt.go_on() == "request_in_progress"
    assert_books_balance()


def test_control_without_the_fence_it_buys_without_a_record() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    assert cleanup_records() == 1
    with without("idempotency/sql/stamp.sql", ("IF NOT FOUND", "IF false")):
        assert attempt.go_on() == "bought"

    assert scalar("SELECT count(*) FROM idempotency_idempotencyrecord") == 0


def test_an_old_record_that_was_just_taken_over_stays() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    Attempt(merchant, product.pk)
    age_records(UNFINISHED)
    successor = Attempt(merchant, product.pk)

    assert cleanup_records() == 0

    assert successor.go_on() == "bought"
    assert_books_balance()


def test_replays_while_cleanup_runs_are_replays_or_one_new_purchase() -> None:
    """The contract lets a cleaned key buy again; whatever a retry meets, it meets it whole."""
    merchant, product = make_merchant(), make_product(price="1.00", codes=50)
    keys = [f"key {number}" for number in range(12)]
    firsts = {key: merchant.buy(key, product_id=product.pk, quantity=1) for key in keys}
    age_records(COMPLETED)

    def replay(key: str) -> Any:
        return of_own(merchant).buy(key, product_id=product.pk, quantity=1)

    replays = [partial(replay, key) for key in keys for _ in range(2)]
    *_, deleted = race([*replays, cleanup_records])

    orders = scalar("SELECT count(*) FROM orders_order")
    assert len(keys) <= orders <= len(keys) + deleted
    for key in keys:
        told = {replay(key).content for _ in range(2)}
        assert len(told) == 1
        assert firsts[key].status_code == 201
    assert_books_balance()


def test_cleanup_among_claims_takeovers_and_purchases_loses_nothing() -> None:
    """Every record is old all the time, and cleaners, zombies and retries go round at once."""
    merchants = [make_merchant(balance="1000.00") for _ in range(2)]
    product = make_product(price="1.00", codes=400)
    until = time.monotonic() + 2

    def buy(number: int) -> list[str]:
        merchant, told = of_own(merchants[number % 2]), []
        while time.monotonic() < until:
            told.append(outcome(merchant.buy("one", product_id=product.pk, quantity=1)))
        return told

    def attempt(number: int) -> list[str]:
        told = []
        while time.monotonic() < until:
            try:
                told.append(Attempt(merchants[number % 2], product.pk).go_on())
            except (ApiError, AssertionError) as error:  # refused, or a replay
                told.append(str(getattr(error, "code", "replayed")))
        return told

    def repeat(work: Callable[[], object]) -> list[str]:
        while time.monotonic() < until:
            work()
        return []

    told = race(
        [
            *[partial(buy, number) for number in range(4)],
            *[partial(attempt, number) for number in range(4)],
            *[partial(repeat, cleanup_records)] * 2,
            partial(repeat, partial(age_records, COMPLETED)),
        ]
    )

    seen = Counter(one for each in told for one in each)
    assert ErrorCode.SERVER_ERROR not in seen, seen
    assert seen["bought"] == scalar("SELECT count(*) FROM orders_order") > 1
    assert_books_balance()
