"""Runs calls in threads at once, and holds locks to stop them in the middle.

Tests that use this module need `django_db(transaction=True)`.
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
from tests.live import owner_url

TIMEOUT = 30.0  # seconds


T = TypeVar("T")


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs each call in a thread, all starting at the same moment. Returns the results in order."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(TIMEOUT)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [start(pool, run, call) for call in calls]]


def start(pool: ThreadPoolExecutor, call: Callable[..., T], *arguments: Any) -> Future[T]:
    """Runs the call in a thread of the pool, with its own database connection."""

    def run() -> T:
        try:
            return call(*arguments)
        finally:
            connection.close()

    served_document()  # fills its cache in this thread; every response is checked against it
    return pool.submit(run)


@contextmanager
def in_background(call: Callable[[], T]) -> Iterator[Future[T]]:
    """Runs the call in a thread. The block waits for its end."""
    with ThreadPoolExecutor(1) as pool:
        yield start(pool, call)


@contextmanager
def holding_locks(statement: str, *arguments: Any) -> Iterator[psycopg.Connection]:
    """Runs a statement in another transaction and holds its locks until the block ends.

    The transaction is rolled back. `rollback()` or `commit()` on the yielded connection ends it
    earlier.
    """
    with psycopg.connect(owner_url()) as other:
        other.execute(statement.encode(), arguments)
        yield other
        other.rollback()


def holding_wallet(merchant: Merchant) -> AbstractContextManager[psycopg.Connection]:
    """Stops every purchase of this merchant at its debit, after it took its other locks."""
    return holding_locks(
        "SELECT FROM wallets_wallet WHERE account_id = %s FOR UPDATE", merchant.client.account_id
    )


def spending(merchant: Merchant, amount: str) -> AbstractContextManager[psycopg.Connection]:
    """Holds the wallet like `holding_wallet`; `commit()` takes the amount from it."""
    return holding_locks(
        "INSERT INTO wallets_ledgerentry"
        " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference)"
        " VALUES (%s, 'adjustment', 'corrections', -%s::numeric, 0, 'test', gen_random_uuid())",
        merchant.client.account_id,
        amount,
    )


def wait_for_waiting(number: int = 1) -> None:
    """Waits until this many sessions wait for a lock."""
    deadline = time.monotonic() + TIMEOUT
    while waiting() < number:
        assert time.monotonic() < deadline, f"{waiting()} sessions wait, not {number}"
        time.sleep(0.01)


def waiting() -> int:
    """The number of sessions in this database that wait for a lock."""
    number: int = scalar(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return number


def without_triggers(statement: str, *arguments: Any) -> None:
    """Executes a statement with all triggers off, as only a superuser can."""
    execute("SET session_replication_role = replica")
    execute(statement, *arguments)
    execute("SET session_replication_role = origin")


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
def weakened_sql(file: str, *guards: tuple[str, str]) -> Iterator[None]:
    """Installs an SQL file such as `wallets/sql/post_entry.sql` with each guard replaced.

    Control tests use it to show that a race happens once its guard is gone.
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
    """Purchases read price and state of their shelf without locking it, before they wait."""
    locks = ("FOR NO KEY UPDATE OF shelf", ""), ("FOR NO KEY UPDATE", "")
    with weakened_sql("catalogue/sql/offer.sql", *locks):
        yield


def with_own_http(merchant: Merchant) -> Merchant:
    """The same merchant with its own HTTP client, because threads cannot share one."""
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
    """Makes every idempotency record older by this many seconds."""
    execute(
        "UPDATE idempotency_idempotencyrecord"
        " SET created_at = created_at - %s * interval '1 second',"
        "     started_at = started_at - %s * interval '1 second',"
        "     bought_at = bought_at - %s * interval '1 second'",
        seconds,
        seconds,
        seconds,
    )
