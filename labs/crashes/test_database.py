"""When PostgreSQL dies during purchases, no acknowledged purchase is lost.

Claims and stored responses commit with `synchronous_commit = off`, purchases with `on`. A server
that is killed with -9 loses the commits that did not wait for the disk.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from django.db import connection

from embedded.binaries import postgres_major_version
from labs.installation.buyers import (
    WINDOW,
    Bought,
    Buyers,
    assert_no_purchase_failed_or_doubled,
)
from labs.installation.postgres import DurablePostgres
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    execute,
    outcome,
    rows,
    scalar,
    weakened_sql,
)
from tests.core.test_pauses import JOBS, make_work
from tests.factories import make_merchant, make_product
from tests.live import LiveServer, live_server, with_settings

ENVIRONMENT = with_settings("config.settings_api", IDEMPOTENCY_IN_PROGRESS_SECONDS=WINDOW)


def test_a_kill_loses_no_acknowledged_purchase(durable: DurablePostgres) -> None:
    """The web server is not restarted; it reconnects by itself."""
    with live_server(ENVIRONMENT) as server:
        buyers = Buyers.with_shop(server, codes=2500)
        for _ in range(3):
            with buyers.running(threads=8):
                buyers.wait_for_sales(20)
                kill_and_restart(durable)
                buyers.wait_for_sales(20)
            assert_no_purchase_failed_or_doubled(buyers)
        ends = Counter(retry(buyers, server, one) for one in buyers.bought)

    assert ends["replayed"] > 0
    assert ends.keys() <= {"replayed", "request_abandoned"}
    assert_no_purchase_failed_or_doubled(buyers)
    assert_books_balance()


def retry(buyers: Buyers, server: LiveServer, bought: Bought) -> str:
    """Sends a purchase again until its outcome is known. Asserts that it names the same order."""
    while True:
        answer = buyers.send(server, api_key=bought.api_key, key=bought.key, body=bought.body)
        assert answer is not None
        found, body = outcome(answer), answer.json()
        if found != "request_in_progress":
            assert body.get("data", body.get("error"))["reference"] == bought.data["reference"]
            return found
        time.sleep(0.1)


def test_control_asynchronous_purchases_are_lost(
    durable: DurablePostgres,
) -> None:
    waiting = ("PERFORM set_config('synchronous_commit', 'on', true);", "NULL;")
    execute("ALTER DATABASE voucher SET synchronous_commit = off")
    try:
        with (
            weakened_sql("orders/sql/purchase_vouchers.sql", waiting),
            live_server(ENVIRONMENT) as server,
        ):
            buyers = Buyers.with_shop(server, codes=2500)
            with background_writers_stopped(), buyers.running(threads=8):
                buyers.wait_for_sales(20)
                kill_and_restart(durable)
            ordered = {reference for (reference,) in rows("SELECT reference FROM orders_order")}
            assert buyers.references - ordered
    finally:
        execute("ALTER DATABASE voucher RESET synchronous_commit")
        connection.close()


@contextmanager
def background_writers_stopped() -> Iterator[None]:
    """Stops PostgreSQL's background writers, so only commits flush the write-ahead log."""
    found = rows(
        "SELECT pid FROM pg_stat_activity"
        " WHERE backend_type IN ('walwriter', 'checkpointer', 'background writer')"
    )
    assert len(found) == 3
    for (pid,) in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for (pid,) in found:
            with suppress(ProcessLookupError):  # killed with the server
                os.kill(pid, signal.SIGCONT)


def kill_and_restart(durable: DurablePostgres) -> None:
    connection.close()
    durable.kill()
    durable.start()


def test_a_purchase_waits_for_the_disk_once(durable: DurablePostgres) -> None:
    """Before PostgreSQL 18, the flushes of the WAL writer count, too: a few each second."""
    assert 0.95 < flushes_per_purchase() < 1.6


def test_control_durable_claims_and_responses_wait_three_times(
    durable: DurablePostgres,
) -> None:
    not_waiting = ("set_config('synchronous_commit', 'off', true),", "")
    with (
        weakened_sql("idempotency/sql/claim.sql", not_waiting),
        weakened_sql("idempotency/sql/store_response.sql", not_waiting),
    ):
        assert flushes_per_purchase() > 2.6


def test_the_transactions_of_a_job_do_not_wait_for_the_disk(
    durable: DurablePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or purchases beside it would wait longer. What a crash then loses, the next run repeats."""
    make_work(30, monkeypatch)
    for job in JOBS:
        before = flushes()
        assert job() >= 30
        assert flushes() - before < 10


def flushes_per_purchase(purchases: int = 200) -> float:
    """The flushes of the write-ahead log per purchase, for purchases one after the other."""
    merchant = make_merchant(balance="1000.00", rate_limit_per_minute=100_000)
    product = make_product(price="1.00", codes=purchases)
    before = flushes()
    for _ in range(purchases):
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    return (flushes() - before) / purchases


def flushes() -> int:
    """The number of flushes so far. PostgreSQL counts those of ended sessions only."""
    connection.close()
    ours = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    while scalar(ours) > 1:
        time.sleep(0.01)
    counted: int = scalar(
        "SELECT sum(fsyncs) FROM pg_stat_io"
        " WHERE object = 'wal' AND backend_type = 'client backend'"
        if postgres_major_version() >= 18
        else "SELECT wal_sync FROM pg_stat_wal"
    )
    return counted
