"""When PostgreSQL dies while a purchase waits, the process ends the attempt, and a retry buys soon.

The keys stay in the database, so these tests have one of their own.
"""

import time
import uuid
from contextlib import suppress
from functools import partial

import psycopg
from django.db import connection

from labs.installation.buyers import Buyers
from labs.installation.postgres import DurablePostgres
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import (
    execute,
    holding_locks,
    in_background,
    outcome,
    scalar,
    wait_for_waiting,
)
from tests.live import LiveServer, live_server, with_settings

SOON = 10.0  # seconds, of the five minutes for which a key is in progress


def test_a_retry_buys_soon_after_a_restart(durable: DurablePostgres) -> None:
    """A purchase that waits for a lock when PostgreSQL dies has not bought, and its process makes
    sure of that when PostgreSQL is back."""
    with live_server(with_settings("config.settings_api")) as server:
        buyers = Buyers.with_shop(server, codes=20)
        keys = [fail_by_restart(durable, server, buyers) for _ in range(2)]
        since = time.monotonic()
        ends = [retry_until_it_ends(server, buyers, key) for key in keys]

    assert ends == ["bought", "bought"]
    assert time.monotonic() - since < SOON
    assert scalar("SELECT count(*) FROM orders_order") == 2
    assert_books_balance()


def test_control_a_process_that_has_ended_leaves_the_key_in_progress(
    durable: DurablePostgres,
) -> None:
    with live_server(with_settings("config.settings_api")) as server:
        buyers = Buyers.with_shop(server, codes=20)
        key = fail_by_restart(durable, server, buyers, restart=False)
    durable.start()
    with live_server(with_settings("config.settings_api")) as server:
        assert retry_until_it_ends(server, buyers, key) == "request_in_progress"


def fail_by_restart(
    durable: DurablePostgres, server: LiveServer, buyers: Buyers, *, restart: bool = True
) -> str:
    """Kills PostgreSQL while a purchase waits for its last lock. Returns its idempotency key."""
    key = str(uuid.uuid4())
    buying = partial(send_once, server, buyers, key)
    with (
        suppress(psycopg.OperationalError),  # its connection dies, too
        holding_locks("SELECT FROM wallets_wallet FOR UPDATE"),
        in_background(buying) as bought,
    ):
        wait_for_waiting()
        execute("SELECT pg_switch_wal()")  # a claim waits for no disk: the kill might lose it
        connection.close()
        durable.kill()
        assert bought.result() == "server_error"
    if restart:
        durable.start()
        claims = "SELECT count(*) FROM idempotency_idempotencyrecord WHERE key = %s"
        assert scalar(claims, key) == 1  # or a retry would buy without the end of its attempt
    return key


def send_once(server: LiveServer, buyers: Buyers, key: str) -> str:
    answer = buyers.send(server, api_key=buyers.api_keys[0], key=key, body=buyers.bodies[0])
    assert answer is not None
    return outcome(answer)


def retry_until_it_ends(server: LiveServer, buyers: Buyers, key: str) -> str:
    """The outcome of the purchase, or `request_in_progress` if it is still that after SOON."""
    deadline = time.monotonic() + SOON
    while (found := send_once(server, buyers, key)) == "request_in_progress":
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return found
