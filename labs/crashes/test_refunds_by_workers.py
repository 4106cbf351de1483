"""Real workers with a real broker credit each failed top-up once, whichever process dies."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from labs.installation.rabbitmq import BROKERS
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import execute, holding_locks, scalar
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_topup_product,
    move_now,
)
from tests.tasks.running import Broker, Crew, wait_until
from topups.fulfilment.refunds import sweep_refunds
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment
from topups.tasks import refund_fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

STOP_LOCK = 7_001  # the advisory lock that a task waits for


def fail_topup(merchant: Merchant) -> Fulfilment:
    """Buys and rejects a top-up of 4.99. Its refund task goes to the broker of the test."""
    reference = buy_topup(merchant, make_topup_product(price="4.99"))
    return move_now(reference=reference, move=Move.REJECT, operator=make_operator())


def kept(broker: Broker) -> int:
    """The number of messages that no worker has acknowledged."""
    return broker.waiting() + broker.unacknowledged()


def credits_of(fulfilment: Fulfilment) -> int:
    number: int = scalar(
        "SELECT count(*) FROM wallets_ledgerentry WHERE kind = 'refund' AND order_reference = %s",
        fulfilment.order_reference,
    )
    return number


def shown_refunded(merchant: Merchant, fulfilment: Fulfilment) -> bool:
    answer = merchant.get(f"/orders/{fulfilment.order_reference}")
    assert answer.status_code == 200
    refunded: bool = answer.json()["data"]["refunded"]
    if refunded:  # the response never shows a refund before its credit
        assert credits_of(fulfilment) == 1
    return refunded


def wait_until_refunded(merchant: Merchant, *fulfilments: Fulfilment) -> None:
    for fulfilment in fulfilments:
        wait_until(
            lambda one=fulfilment: shown_refunded(merchant, one),  # type: ignore[misc]
            f"{fulfilment.order_reference} is refunded",
        )
        assert credits_of(fulfilment) == 1
        assert fulfilment.events.filter(move="refund").count() == 1


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_a_rejection_is_refunded_by_its_task(broker: Broker, crew: Crew) -> None:
    crew.worker()
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)

    wait_until_refunded(merchant, fulfilment)

    assert merchant.get("/balance").json()["data"]["balance"] == 100
    wait_until(lambda: kept(broker) == 0, "the message is acknowledged")


def test_repeated_messages_credit_once(broker: Broker, crew: Crew) -> None:
    """Two workers with two processes each receive every message 21 times, in any order."""
    merchant = make_merchant()
    fulfilments = [fail_topup(merchant) for _ in range(5)]
    for _ in range(10):
        for fulfilment in reversed(fulfilments):
            broker.send(refund_fulfilment, fulfilment.pk, times=2)
    crew.worker()
    crew.worker()

    wait_until_refunded(merchant, *fulfilments)
    wait_until(lambda: kept(broker) == 0, "every message is processed")

    assert [credits_of(fulfilment) for fulfilment in fulfilments] == [1] * 5
    assert merchant.get("/balance").json()["data"]["balance"] == 100
    assert_books_balance()


# Where a task is stopped: the event of a trigger. `interleavings/kills/` kills at every statement.
STATEMENTS = {
    "after the credit": "AFTER INSERT ON wallets_ledgerentry",
    "after the history": "AFTER INSERT ON topups_fulfilmentevent",
}


@contextmanager
def stopping(where: str) -> Iterator[psycopg.Connection]:
    """Stops every session at this trigger event until the lock is released or the block ends.

    Yields the connection that holds the lock; its rollback releases the lock.
    """
    table = where.split(" ON ")[1]
    execute(
        "CREATE FUNCTION test_stop() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN PERFORM pg_advisory_xact_lock_shared({STOP_LOCK}); RETURN NEW; END $$"
    )
    execute(f"CREATE TRIGGER a_test_stop {where} FOR EACH ROW EXECUTE FUNCTION test_stop()")
    try:
        with holding_locks("SELECT pg_advisory_xact_lock(%s)", STOP_LOCK) as holding:
            yield holding
    finally:
        execute(f"DROP TRIGGER a_test_stop ON {table}")
        execute("DROP FUNCTION test_stop")


def wait_for_stopped(number: int = 1) -> None:
    wait_until(
        lambda: (
            scalar(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                " AND objid = %s AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())",
                STOP_LOCK,
            )
            >= number
        ),
        "a task waits for the lock",
    )


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_a_worker_killed_between_two_statements_credits_once(broker: Broker, crew: Crew) -> None:
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)
    with stopping(STATEMENTS["after the credit"]) as holding:
        killed = crew.impatient_worker()
        wait_for_stopped()
        assert not shown_refunded(merchant, fulfilment)
        killed.kill()
        assert credits_of(fulfilment) == 0
        holding.rollback()
    wait_until(lambda: kept(broker) == 1, "the message is not lost with its worker")

    crew.impatient_worker()

    wait_until_refunded(merchant, fulfilment)
    wait_until(
        lambda: kept(broker) == 0,
        "the message is redelivered and acknowledged",
    )
    assert credits_of(fulfilment) == 1
    assert_books_balance()


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_a_worker_killed_between_commit_and_acknowledgement_credits_once(
    broker: Broker, crew: Crew
) -> None:
    """The worker's parent process, which acknowledges the message, is stopped before its death."""
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)
    with stopping(STATEMENTS["after the history"]) as holding:
        killed = crew.impatient_worker()
        wait_for_stopped()
        os.kill(killed.pid, signal.SIGSTOP)
        holding.rollback()
        wait_until(lambda: credits_of(fulfilment) == 1, "the refund is committed")
        killed.kill()
    wait_until(lambda: kept(broker) == 1, "the message is not lost with its worker")

    again = crew.impatient_worker()

    wait_until(lambda: again.events("task_succeeded"), "the message is redelivered")
    wait_until_refunded(merchant, fulfilment)
    assert merchant.get("/balance").json()["data"]["balance"] == 100


def test_a_killed_child_process_is_replaced_at_once(broker: Broker, crew: Crew) -> None:
    """Only the process that runs the task dies, as from the kernel's out-of-memory killer."""
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)
    with stopping(STATEMENTS["after the credit"]) as holding:
        worker = crew.worker()
        wait_for_stopped()
        for pid in worker.children():
            os.kill(pid, signal.SIGKILL)
        holding.rollback()

    before = time.monotonic()
    wait_until_refunded(merchant, fulfilment)
    assert time.monotonic() - before < 20  # earlier than any visibility_timeout
    assert worker.exit_code() is None


def test_control_early_acknowledgement_loses_the_message(broker: Broker, crew: Crew) -> None:
    """Control: without late acknowledgement the message is lost; the sweep still refunds."""
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)
    with stopping(STATEMENTS["after the credit"]) as holding:
        killed = crew.worker(app="labs.crashes.unguarded")
        wait_for_stopped()
        killed.kill()
        holding.rollback()

    assert broker.waiting() + broker.unacknowledged() == 0
    assert not shown_refunded(merchant, fulfilment)
    assert sweep_refunds() == 1
    assert shown_refunded(merchant, fulfilment)
