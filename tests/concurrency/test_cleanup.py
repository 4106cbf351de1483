"""Cleanup deletes old idempotency records, but never that of a running purchase."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.conf import settings

from core.api.errors import ApiError, ErrorCode
from idempotency.cleanup import cleanup_records
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    age_records,
    holding_wallet,
    in_background,
    outcome,
    race,
    rows,
    scalar,
    wait_for_waiting,
    weakened_sql,
    with_own_http,
)
from tests.concurrency.test_takeover import Attempt
from tests.factories import make_merchant, make_product

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

DAY = 86_400
UNFINISHED = settings.IDEMPOTENCY_KEEP_UNFINISHED_DAYS * DAY + 1
COMPLETED = settings.IDEMPOTENCY_KEEP_COMPLETED_DAYS * DAY + 1


def test_cleanup_skips_the_record_of_a_running_purchase() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    with holding_wallet(merchant) as wallet, in_background(attempt.finish) as purchase:
        wait_for_waiting(1)
        assert cleanup_records() == 0
        wallet.rollback()
        assert purchase.result() == "bought"

    retry = merchant.buy("one", product_id=product.pk, quantity=1)
    assert outcome(retry) == "request_abandoned"
    assert_books_balance()


def test_a_purchase_whose_record_was_deleted_buys_nothing() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    assert cleanup_records() == 1

    assert attempt.finish() == "request_in_progress"
    assert rows("SELECT id FROM orders_order") == []
    assert outcome(merchant.buy("one", product_id=product.pk, quantity=1)) == "bought"
    assert attempt.finish() == "request_in_progress"
    assert_books_balance()


def test_control_without_the_stamp_it_buys_without_a_record() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    attempt = Attempt(merchant, product.pk)
    age_records(UNFINISHED)

    assert cleanup_records() == 1
    with weakened_sql("idempotency/sql/stamp.sql", ("IF NOT FOUND", "IF false")):
        assert attempt.finish() == "bought"

    assert scalar("SELECT count(*) FROM idempotency_idempotencyrecord") == 0


def test_an_old_record_with_a_new_attempt_is_kept() -> None:
    merchant, product = make_merchant(), make_product(codes=5)
    Attempt(merchant, product.pk)
    age_records(UNFINISHED)
    successor = Attempt(merchant, product.pk)

    assert cleanup_records() == 0

    assert successor.finish() == "bought"
    assert_books_balance()


def test_a_retry_during_cleanup_is_a_replay_or_one_new_purchase() -> None:
    """A cleaned key may buy again. A retry gets either a replay or one new purchase."""
    merchant, product = make_merchant(), make_product(price="1.00", codes=50)
    keys = [f"key {number}" for number in range(12)]
    firsts = {key: merchant.buy(key, product_id=product.pk, quantity=1) for key in keys}
    age_records(COMPLETED)

    def replay(key: str) -> Any:
        return with_own_http(merchant).buy(key, product_id=product.pk, quantity=1)

    replays = [partial(replay, key) for key in keys for _ in range(2)]
    *_, deleted = race([*replays, cleanup_records])

    orders = scalar("SELECT count(*) FROM orders_order")
    assert len(keys) <= orders <= len(keys) + deleted
    for key in keys:
        told = {replay(key).content for _ in range(2)}
        assert len(told) == 1
        assert firsts[key].status_code == 201
    assert_books_balance()


def test_cleanup_during_claims_and_takeovers_loses_nothing() -> None:
    """Records are old all the time while cleanups, stale attempts and retries run at once."""
    merchants = [make_merchant(balance="1000.00") for _ in range(2)]
    product = make_product(price="1.00", codes=400)
    until = time.monotonic() + 2

    def buy(number: int) -> list[str]:
        merchant, told = with_own_http(merchants[number % 2]), []
        while time.monotonic() < until:
            told.append(outcome(merchant.buy("one", product_id=product.pk, quantity=1)))
        return told

    def attempt(number: int) -> list[str]:
        told = []
        while time.monotonic() < until:
            try:
                told.append(Attempt(merchants[number % 2], product.pk).finish())
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
