"""When the web server dies during purchases, each purchase still has one debit and one delivery."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest

from labs.bursts import TIMEOUT, WINDOW, Burst
from tests.concurrency.racing import (
    execute,
    holding_locks,
    holding_wallet,
    wait_for_waiting,
    waiting,
    weakened_sql,
)
from tests.live import live_server, with_settings

pytestmark = pytest.mark.django_db(transaction=True)

ENVIRONMENT = with_settings("config.settings_api", IDEMPOTENCY_IN_PROGRESS_SECONDS=WINDOW)
STORE = "idempotency/sql/store_response.sql"
PURCHASE = "orders/sql/purchase_vouchers.sql"
ADVISORY = 7


def test_a_kill_during_many_purchases() -> None:
    """The steps of a purchase are slowed down, so a kill hits purchases in every step."""
    slow = ("BEGIN\n", "BEGIN\n    PERFORM pg_sleep(0.03);\n")
    told: Counter[str] = Counter()

    with (
        weakened_sql(STORE, slow),
        weakened_sql(PURCHASE, slow),
        live_server(ENVIRONMENT) as server,
    ):
        burst = Burst(server)
        for round_ in range(3):
            with burst.running():
                wait_for_orders(burst, more=15)
                server.kill()
                if round_ != 1:  # in one round, running statements continue in the database
                    end_other_sessions()
            server.start()
            told += burst.settle()

    assert told.keys() == {"replayed", "request_abandoned", "bought"}, told


def test_a_kill_before_the_commit() -> None:
    """Nothing is committed, so a retry takes the key over and buys."""
    assert outcome_after_kill(at_debit, then=end_other_sessions) == {"bought": 1}


def test_a_kill_while_the_database_finishes_the_purchase() -> None:
    """The database finishes and commits the purchase, so a retry gets its order reference."""
    assert outcome_after_kill(at_debit, then=lambda: None) == {"request_abandoned": 1}


def test_a_kill_between_the_commit_and_the_response() -> None:
    """The purchase is committed and its response lost, so a retry gets its order reference."""
    assert outcome_after_kill(at_store, then=end_other_sessions) == {"request_abandoned": 1}


def test_sigterm_finishes_every_request() -> None:
    """SIGTERM arrives while each worker runs a purchase and other purchases wait in its queue.

    Granian stops accepting connections and finishes the requests it has. Two timeouts of `make run`
    could cut this short, so --workers-kill-timeout exceeds statement_timeout, and the supervisor's
    STOP_TIMEOUT exceeds --workers-kill-timeout.
    """
    with live_server(ENVIRONMENT) as server, ThreadPoolExecutor(200) as pool:
        burst = Burst(server, codes=200)
        with holding_wallet(burst.merchants[0]) as wallet:
            answers = [burst.send_in_background(pool) for _ in range(12)]
            answers += send_until_both_workers_wait(burst, pool)
            time.sleep(0.5)  # until the other requests are in the workers' queues
            server.terminate()
            time.sleep(1)
            wallet.rollback()

        assert all(answer.result() for answer in answers)
        server.stop()
        server.start()
        assert burst.settle() == {"replayed": len(answers)}


def send_until_both_workers_wait(burst: Burst, pool: ThreadPoolExecutor) -> list[Future[Any]]:
    """The kernel assigns connections to workers at random, so more requests may be needed."""
    sent: list[Future[Any]] = []
    deadline = time.monotonic() + TIMEOUT
    while waiting() < 2:
        assert time.monotonic() < deadline, "the second worker gets no request"
        time.sleep(0.5)
        sent.append(burst.send_in_background(pool))
    return sent


def outcome_after_kill(
    stopped: Callable[[Burst], AbstractContextManager[psycopg.Connection]],
    *,
    then: Callable[[], None],
) -> Counter[str]:
    """Kills the server while `stopped` holds a purchase, calls `then`, and retries.

    Returns the outcome of the retry on a new server.
    """
    wait_first = ("BEGIN\n", f"BEGIN\n    PERFORM pg_advisory_xact_lock({ADVISORY});\n")
    with (
        weakened_sql(STORE, wait_first),
        live_server(ENVIRONMENT, workers=1) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        burst = Burst(server, codes=200)
        with stopped(burst) as lock:
            answer = burst.send_in_background(pool)
            wait_for_waiting(1)
            server.kill()
            assert answer.result() is None
            then()
            lock.rollback()
        server.start()
        return burst.settle()


def at_debit(burst: Burst) -> AbstractContextManager[psycopg.Connection]:
    return holding_wallet(burst.merchants[0])


def at_store(burst: Burst) -> AbstractContextManager[psycopg.Connection]:
    return holding_locks("SELECT pg_advisory_xact_lock(%s)", ADVISORY)


def end_other_sessions() -> None:
    """Terminates the sessions of the dead server, as if the database noticed at once."""
    execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND query LIKE %s",
        "SELECT * FROM %",
    )


def wait_for_orders(burst: Burst, *, more: int) -> None:
    enough = len(burst.orders()) + more
    deadline = time.monotonic() + TIMEOUT
    while len(burst.orders()) < enough:
        assert time.monotonic() < deadline, "no purchases"
        time.sleep(0.01)
