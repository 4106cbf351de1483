"""Real threads on a real database: start them together, hold them in the middle, look at the books.

Tests that use this need `django_db(transaction=True)`.
"""

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from django.conf import settings
from django.db import connection

from tests.answers import CheckedClient, served_document
from tests.factories import Merchant
from tests.live import database_url

PATIENCE = 30.0


T = TypeVar("T")


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs the calls in a thread each, all released at the same moment; their results in order."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        gate.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [start(pool, run, call) for call in calls]]


def start(pool: ThreadPoolExecutor, call: Callable[..., T], *arguments: Any) -> Future[T]:
    """Runs the call in a thread of the pool, on a database connection of its own."""

    def run() -> T:
        try:
            return call(*arguments)
        finally:
            connection.close()

    served_document()  # made once, by one thread: every answer is held against it
    return pool.submit(run)


@contextmanager
def in_background(call: Callable[[], T]) -> Iterator[Future[T]]:
    """The call in a thread, which has ended when the block has."""
    with ThreadPoolExecutor(1) as pool:
        yield start(pool, call)


@contextmanager
def held(statement: str, *arguments: Any) -> Iterator[psycopg.Connection]:
    """Holds whatever the statement locks until the block ends; then it never happened.

    `rollback()` or `commit()` on the connection lets go earlier.
    """
    with psycopg.connect(database_url()) as other:
        other.execute(statement.encode(), arguments)
        yield other
        other.rollback()


def held_wallet(merchant: Merchant) -> AbstractContextManager[psycopg.Connection]:
    """Stops every purchase of this merchant at its debit, its other locks taken."""
    return held(
        "SELECT FROM wallets_wallet WHERE account_id = %s FOR UPDATE", merchant.client.account_id
    )


def spending(merchant: Merchant, amount: str) -> AbstractContextManager[psycopg.Connection]:
    """The same, and `commit()` takes the amount from the wallet."""
    return held(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, actor)"
        " VALUES (%s, 'adjustment', 'corrections', -%s::numeric, 0, 'test')",
        merchant.client.account_id,
        amount,
    )


def wait_for_waiting(number: int = 1) -> None:
    """Returns when so many sessions wait."""
    deadline = time.monotonic() + PATIENCE
    while waiting() < number:
        assert time.monotonic() < deadline, f"{waiting()} sessions wait, not {number}"
        time.sleep(0.01)


def waiting() -> int:
    """How many other sessions wait for a lock in this database."""
    number: int = scalar(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return number


def rows(query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, arguments)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def scalar(query: str, *arguments: Any) -> Any:
    return rows(query, *arguments)[0][0]


def execute(statement: str, *arguments: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, arguments or None)


@contextmanager
def without(file: str, *guards: tuple[str, str]) -> Iterator[None]:
    """The SQL of a file such as `wallets/sql/debit.sql` with some of its text replaced.

    For control tests: a race that is not there when its guard is gone proves nothing.
    """
    original = (Path(settings.BASE_DIR) / file).read_text()
    weakened = original
    for guard, replacement in guards:
        assert guard in weakened, f"{file} has changed: {guard!r} is not in it"
        weakened = weakened.replace(guard, replacement)
    execute(weakened)
    try:
        yield
    finally:
        execute(original)


@contextmanager
def unlocked_shelves() -> Iterator[None]:
    """Purchases find their shelf without locking it: each reads its offer before it has to wait."""
    locks = ("FOR NO KEY UPDATE OF shelf", ""), ("FOR NO KEY UPDATE", "")
    with without("catalogue/sql/offer.sql", *locks):
        yield


def of_own(merchant: Merchant) -> Merchant:
    """The same merchant from another of its programs, so that threads share no cookies."""
    twin = copy.copy(merchant)
    twin.http = CheckedClient(raise_request_exception=False)
    return twin


def outcome(answer: Any) -> str:
    """`bought`, `replayed`, or the reason or code of a failure."""
    if answer.status_code == 201:
        return "replayed" if "Idempotent-Replay" in answer.headers else "bought"
    error = answer.json()["error"]
    return str(error.get("reason") or error["code"])


def codes_of(answer: Any) -> list[str]:
    return [code["code"] for code in answer.json()["data"]["codes"]]


def age_records(seconds: float) -> None:
    """Makes every idempotency record so much older."""
    execute(
        "UPDATE idempotency_idempotencyrecord"
        " SET created_at = created_at - %s * interval '1 second',"
        "     started_at = started_at - %s * interval '1 second'",
        seconds,
        seconds,
    )
