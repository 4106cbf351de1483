"""Contract, "Idempotency record": the response to a used key, row by row."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from idempotency.cleanup import cleanup_records
from tests.contract.rows import RECORD_ROWS, table
from tests.contract.situations import (
    WINDOW,
    Shop,
    age_records,
    data,
    error,
    fail_before_commit,
    lose_answer,
    make_shop,
    money,
    refusal,
)

pytestmark = pytest.mark.django_db(transaction=True)

ALMOST = timedelta(seconds=5)


def window_open_with_a_purchase() -> None:
    shop = make_shop()
    lose_answer(shop, "one")
    age_records(WINDOW - ALMOST)
    before = money()
    assert refusal(shop.buy("one"))[:2] == (409, "request_in_progress")
    assert money() == before


def window_open_without_a_purchase() -> None:
    shop = make_shop()
    fail_before_commit(shop, "one")
    age_records(WINDOW - ALMOST)
    assert refusal(shop.buy("one"))[:2] == (409, "request_in_progress")


def abandoned() -> None:
    shop = make_shop()
    lose_answer(shop, "one")
    age_records(WINDOW)
    before = money()
    for _ in range(2):
        answer = shop.buy("one")
        assert refusal(answer)[:2] == (409, "request_abandoned")
    assert money() == before
    order = data(shop.merchant.get(f"/orders/{error(answer)['reference']}"))
    assert order == data(shop.merchant.get("/orders"))["items"][0]


def taken_over() -> None:
    shop = make_shop(codes=1)
    fail_before_commit(shop, "one")
    age_records(WINDOW)
    answer = shop.buy("one")
    assert answer.status_code == 201
    assert "Idempotent-Replay" not in answer
    assert len(data(shop.merchant.get("/orders"))["items"]) == 1


def taken_over_and_failed_again() -> None:
    """The five minutes restart with the retry that took the key over."""
    shop = make_shop()
    fail_before_commit(shop, "one")
    age_records(WINDOW)
    fail_before_commit(shop, "one")
    assert refusal(shop.buy("one"))[:2] == (409, "request_in_progress")
    age_records(WINDOW)
    assert shop.buy("one").status_code == 201


def replayed() -> None:
    shop = make_shop()
    first = shop.buy("one")
    before = money()
    for _ in range(2):
        again = shop.buy("one")
        assert (again.status_code, again.content) == (201, first.content)
        assert again["Idempotent-Replay"] == "true"
    assert "Idempotent-Replay" not in first
    assert money() == before


def success_is_kept_seven_days() -> None:
    shop = make_shop()
    first = shop.buy("one")
    age_records(timedelta(days=7) - ALMOST)
    assert cleanup_records() == 0
    assert shop.buy("one").content == first.content
    age_records(ALMOST)
    assert cleanup_records() == 1
    assert_buys_again(shop)


def unfinished_is_kept_one_day() -> None:
    shop = make_shop()
    lose_answer(shop, "one")
    age_records(timedelta(days=1) - ALMOST)
    assert cleanup_records() == 0
    age_records(ALMOST)
    assert cleanup_records() == 1
    assert_buys_again(shop)


def assert_buys_again(shop: Shop) -> None:
    answer = shop.buy("one")
    assert answer.status_code == 201
    assert "Idempotent-Replay" not in answer
    assert data(shop.merchant.get("/orders"))["pagination"]["total"] == 2


CASES: dict[str, Callable[[], None]] = {
    "in progress, window open": window_open_with_a_purchase,
    "in progress, window open: nothing bought": window_open_without_a_purchase,
    "in progress, window over, purchase exists": abandoned,
    "in progress, window over, no purchase": taken_over,
    "in progress, window over, no purchase: fails again": taken_over_and_failed_again,
    "stored success, same content": replayed,
    "cleanup of a success": success_is_kept_seven_days,
    "cleanup of an unfinished record": unfinished_is_kept_one_day,
}


@table(RECORD_ROWS, CASES)
def test_each_row_of_the_idempotency_record(case: Callable[[], None]) -> None:
    case()


def test_a_failure_before_the_commit_changes_neither_balance_nor_stock() -> None:
    """Contract, "Consistency guarantees", 1."""
    shop = make_shop()
    before = money()
    fail_before_commit(shop, "one", quantity=3)
    after = money()
    assert (after.balance, after.stock, after.unsold) == (
        before.balance,
        before.stock,
        before.unsold,
    )
    assert (after.orders, after.entries, after.records) == (before.orders, before.entries, 1)


def test_a_failure_after_the_commit_keeps_the_order_and_the_debit() -> None:
    """Contract, "Consistency guarantees", 2."""
    shop = make_shop(price="9.99", codes=5)
    lose_answer(shop, "one", quantity=2)
    after = money()
    assert (str(after.balance), after.stock, after.unsold) == ("80.0200", 3, 3)
    assert (after.orders, after.records) == (1, 1)
