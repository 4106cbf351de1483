"""Lists of orders of one account wait for each other, and others buy meanwhile."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest

from embedded.commands import WEB_THREADS
from orders import selectors, views
from tests.concurrency.racing import outcome, start, with_own_http
from tests.factories import make_merchant, make_product
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

SOON = 5.0  # seconds


class SlowLists:
    """Lists of orders, each of which reads the database and then goes on when `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.under_way = 0
        read = selectors.orders_of

        def slowly(*arguments: Any, **names: Any) -> Any:
            rows = read(*arguments, **names)
            self.under_way += 1
            assert self.go_on.wait(60)
            return rows

        monkeypatch.setattr(selectors, "orders_of", slowly)

    @contextmanager
    def asked_for(self, number: int) -> Iterator[tuple[ThreadPoolExecutor, list[Future[Any]]]]:
        """One client asks for so many lists, which last as long as the block, in as many threads as
        a web process has. Yields the pool, for more requests, and the answers."""
        reader = make_merchant()
        reader.buy(product_id=make_product(codes=1).pk, quantity=1)
        with ThreadPoolExecutor(WEB_THREADS) as pool:
            lists = [start(pool, with_own_http(reader).get, "/orders") for _ in range(number)]
            wait_until(lambda: self.under_way > 0, "a list is under way")
            try:
                yield pool, lists
            finally:
                self.go_on.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowLists:
    return SlowLists(monkeypatch)


def purchase() -> Callable[[], Any]:
    buyer = with_own_http(make_merchant())
    return partial(buyer.buy, product_id=make_product(codes=1).pk, quantity=1)


def test_a_purchase_does_not_wait_for_lists_of_another_client(slow: SlowLists) -> None:
    buying = purchase()

    with slow.asked_for(2 * WEB_THREADS) as (pool, lists):
        assert outcome(start(pool, buying).result(SOON)) == "bought"
        assert slow.under_way == 1

    told = [answer.result() for answer in lists]
    assert Counter(answer.status_code for answer in told) == {200: 6, 429: 10}
    errors = [answer.json()["error"] for answer in told if answer.status_code == 429]
    assert {(error["code"], error["retry_after_seconds"]) for error in errors} == {
        ("rate_limited", 1)
    }


def test_six_lists_at_once_are_answered(slow: SlowLists) -> None:
    with slow.asked_for(6) as (_, lists):
        pass

    assert [answer.result().status_code for answer in lists] == [200] * 6


def test_control_without_turns_lists_take_every_thread(
    slow: SlowLists, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views.LISTS, "turn", lambda *owner, **network: nullcontext())
    buying = purchase()

    with slow.asked_for(2 * WEB_THREADS) as (pool, _):
        wait_until(lambda: slow.under_way == WEB_THREADS, "each thread reads a list")
        with pytest.raises(TimeoutError):
            start(pool, buying).result(1.0)
