"""The behaviour of workers and refunds with RabbitMQ as the broker."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from core import queue
from labs.crashes.test_broker import MAX_SECONDS, buy_and_reject, refunded
from labs.crashes.test_refunds_by_workers import (
    STATEMENTS,
    credits_of,
    fail_topup,
    stopping,
    wait_for_stopped,
    wait_until_refunded,
)
from labs.installation.rabbitmq import Rabbit, running_rabbitmq
from tests.concurrency.books import assert_books_balance
from tests.factories import make_merchant
from tests.tasks.running import Crew, running_crew, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.rabbitmq,
    pytest.mark.usefixtures("alone"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Rabbit]:
    with running_rabbitmq() as rabbit:
        yield rabbit


@pytest.fixture
def rabbit(server: Rabbit, monkeypatch: pytest.MonkeyPatch) -> Rabbit:
    """The running RabbitMQ, which is also the broker of the test process."""
    monkeypatch.setenv("CELERY_BROKER_URL", server.url)
    monkeypatch.setattr(queue, "pause", queue.Pause())
    return server


@pytest.fixture
def crew(rabbit: Rabbit, transactional_db: None) -> Iterator[Crew]:
    with running_crew(rabbit.url) as crew:
        yield crew


def test_a_rejection_is_refunded_by_its_task(rabbit: Rabbit, crew: Crew) -> None:
    crew.worker()
    merchant = make_merchant()

    wait_until_refunded(merchant, fail_topup(merchant))

    assert merchant.get("/balance").json()["data"]["balance"] == 100
    assert_books_balance()


def test_a_worker_killed_before_or_after_its_commit_refunds_once(
    rabbit: Rabbit, crew: Crew
) -> None:
    """The message is redelivered both times: to a refund that is due, and to one that is done."""
    merchant = make_merchant()
    fulfilment = fail_topup(merchant)
    with stopping(STATEMENTS["after the credit"]):
        killed = crew.worker()
        wait_for_stopped()
        killed.kill()
    assert credits_of(fulfilment) == 0
    with stopping(STATEMENTS["after the history"]) as holding:
        killed = crew.worker()
        wait_for_stopped()
        os.kill(killed.pid, signal.SIGSTOP)  # the parent, which acknowledges the message
        holding.rollback()
        wait_until(lambda: credits_of(fulfilment) == 1, "the refund is committed")
        killed.kill()
    wait_until(lambda: rabbit.waiting() == 1, "the message is back in the queue")

    again = crew.worker()

    wait_until(lambda: again.events("task_succeeded"), "the message is redelivered")
    assert credits_of(fulfilment) == 1
    assert merchant.get("/balance").json()["data"]["balance"] == 100


def test_workers_and_scheduler_resume_with_their_broker(rabbit: Rabbit, crew: Crew) -> None:
    merchant = make_merchant()
    worker, beat = crew.worker(), crew.beat("sweep-refunds")
    before, _ = buy_and_reject(merchant)
    wait_until(lambda: refunded(before), "the refund before the fault")

    rabbit.kill()
    during, seconds = buy_and_reject(merchant)
    assert seconds < MAX_SECONDS
    time.sleep(3)
    assert not refunded(during)
    rabbit.start()

    wait_until(lambda: refunded(during), "the sweep finds the refund")
    queue.pause = queue.Pause()
    after, _ = buy_and_reject(merchant)
    wait_until(lambda: refunded(after), "the refund after the fault")
    assert worker.exit_code() is None
    assert beat.exit_code() is None
    assert_books_balance()


def test_a_task_is_queued_after_a_restart_of_the_broker(
    rabbit: Rabbit, caplog: pytest.LogCaptureFixture
) -> None:
    """The pooled connection is dead, and a new one is opened without a failure."""
    merchant = make_merchant()
    buy_and_reject(merchant)
    rabbit.kill()
    rabbit.start()
    kept = rabbit.waiting()

    buy_and_reject(merchant)

    assert "task_not_queued" not in caplog.text
    wait_until(lambda: rabbit.waiting() == kept + 1, "the message is in the queue")
