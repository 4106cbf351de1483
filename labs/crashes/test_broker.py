"""When the broker fails, purchases and rejections still succeed quickly, and a sweep refunds."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kombu import Connection

from core import queue
from embedded.processes import free_port
from labs.crashes.slow_files import sleep
from labs.crashes.test_refunds_by_workers import STATEMENTS, kept, stopping, wait_for_stopped
from labs.installation.rabbitmq import BROKERS, running_rabbitmq
from tests.concurrency.books import assert_books_balance
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    make_topup_product,
    move_now,
)
from tests.live import HOST
from tests.tasks.running import Broker, Crew, running_broker, running_crew, wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

MAX_SECONDS = 5.0  # three timeouts of half a second, with room for a busy machine


@contextmanager
def silent(scheme: str) -> Iterator[str]:
    """A server that accepts connections and never sends anything."""
    with socket.create_server((HOST, free_port())) as listener:
        port = listener.getsockname()[1]
        yield f"{scheme}://user:secret@{HOST}:{port}/1"


@contextmanager
def refusing(scheme: str) -> Iterator[str]:
    yield f"{scheme}://user:secret@{HOST}:{free_port()}/1"


@contextmanager
def not_accepting(scheme: str) -> Iterator[str]:
    """A server that accepts no connection, because its listen backlog is full."""
    with socket.create_server((HOST, free_port()), backlog=0) as listener:
        port = listener.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex((HOST, port))
        yield f"{scheme}://user:secret@{HOST}:{port}/1"
        for caller in callers:
            caller.close()


@contextmanager
def unknown_host(scheme: str) -> Iterator[str]:
    yield f"{scheme}://user:secret@no-such-host.invalid:1234/1"


@contextmanager
def wrong_password(scheme: str) -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url.replace(broker.password, "wrong")


@contextmanager
def full(scheme: str) -> Iterator[str]:
    with running_broker() as broker, broker.client() as client:
        client.config_set("maxmemory", 1)
        yield broker.url


FAULTS: list[tuple[str, Callable[[str], object]]] = [
    ("redis", silent),
    ("redis", refusing),
    ("redis", not_accepting),
    ("redis", unknown_host),
    ("redis", wrong_password),
    ("redis", full),
    ("amqp", silent),
    ("amqp", refusing),
    ("amqp", not_accepting),
    ("unknown-scheme", refusing),
]


def buy_and_reject(merchant: Merchant) -> tuple[Fulfilment, float]:
    """Buys a top-up over the API and rejects it. Returns it, and the seconds that both took."""
    product, operator = make_topup_product(price="4.99"), make_operator()
    before = time.monotonic()
    reference = buy_topup(merchant, product)
    fulfilment = move_now(reference=reference, move=Move.REJECT, operator=operator)
    return fulfilment, time.monotonic() - before


@pytest.mark.parametrize(
    ("scheme", "fault"), FAULTS, ids=[f"{scheme}-{fault.__name__}" for scheme, fault in FAULTS]
)
def test_an_unusable_broker_delays_nobody(
    scheme: str,
    fault: Callable[[str], "contextmanager[str]"],  # type: ignore[valid-type]
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    merchant = make_merchant()
    monkeypatch.setattr(queue, "pause", queue.Pause())
    with fault(scheme) as url:  # type: ignore[attr-defined]
        monkeypatch.setenv("CELERY_BROKER_URL", url)
        fulfilment, first = buy_and_reject(merchant)
        more = [buy_and_reject(merchant)[1] for _ in range(3)]

    assert fulfilment.status == "failed"
    assert fulfilment.refund_due_at is not None
    assert first < MAX_SECONDS, first
    assert max(more) < 2, more  # the process does not contact the broker during the pause
    assert caplog.text.count("task_not_queued") == 4
    assert caplog.text.count("the broker failed a moment ago") == 3
    assert "secret" not in caplog.text


def test_a_killed_broker_delays_nobody(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    merchant = make_merchant()
    buy_and_reject(merchant)
    assert broker.waiting() == 1
    broker.kill()

    _, seconds = buy_and_reject(merchant)

    assert seconds < MAX_SECONDS
    assert "task_not_queued" in caplog.text


def test_a_frozen_broker_delays_nobody(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    merchant = make_merchant()
    buy_and_reject(merchant)
    broker.freeze()

    _, seconds = buy_and_reject(merchant)

    assert seconds < MAX_SECONDS
    assert "task_not_queued" in caplog.text


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_a_task_is_queued_after_a_restart_of_the_broker(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """The pooled connection is dead, and the next task is still queued."""
    merchant = make_merchant()
    buy_and_reject(merchant)
    time.sleep(1.1)  # the broker writes its file once a second
    broker.kill()
    broker.start()

    buy_and_reject(merchant)

    assert "task_not_queued" not in caplog.text
    wait_until(lambda: broker.waiting() == 2, "both messages wait")


def test_tasks_are_queued_again_after_the_pause(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = make_merchant()
    monkeypatch.setattr(queue, "PAUSE_SECONDS", 0.2)
    broker.kill()
    buy_and_reject(merchant)
    broker.start()
    time.sleep(0.3)

    buy_and_reject(merchant)

    assert broker.waiting() == 1


def refunded(*fulfilments: Fulfilment) -> bool:
    pks = [fulfilment.pk for fulfilment in fulfilments]
    return not Fulfilment.objects.filter(pk__in=pks, refunded_at=None).exists()


@pytest.mark.parametrize(
    ("broker", "fault"),
    [
        ("valkey", "killed"),
        ("valkey", "frozen"),
        pytest.param("rabbitmq", "killed", marks=pytest.mark.rabbitmq),
    ],
    indirect=["broker"],
)
def test_workers_and_scheduler_resume_with_their_broker(
    broker: Broker, crew: Crew, fault: str
) -> None:
    merchant = make_merchant()
    worker, beat = crew.worker(), crew.beat("sweep-refunds")
    before, _ = buy_and_reject(merchant)
    wait_until(lambda: refunded(before), "the refund before the fault")

    if fault == "killed":
        broker.kill()
    else:
        broker.freeze()
    during, seconds = buy_and_reject(merchant)
    assert seconds < MAX_SECONDS
    time.sleep(8)
    assert not refunded(during)
    if fault == "killed":
        broker.start()
    else:
        broker.thaw()

    wait_until(lambda: refunded(during), "the sweep finds the refund")
    queue.pause = queue.Pause()
    after, _ = buy_and_reject(merchant)
    wait_until(lambda: refunded(after), "the refund after the fault")
    assert worker.exit_code() is None
    assert beat.exit_code() is None
    assert merchant.get("/balance").json()["data"]["balance"] == 100
    assert_books_balance()


def test_a_worker_survives_the_death_of_its_broker_during_a_task(
    broker: Broker, crew: Crew
) -> None:
    """Such a worker once crashed with an AttributeError, and no sweep ran any more."""
    merchant = make_merchant()
    due, _ = buy_and_reject(merchant)
    with stopping(STATEMENTS["after the credit"]):
        worker = crew.impatient_worker()
        wait_for_stopped()
        time.sleep(1.1)  # the broker writes its file once a second
        broker.kill()
        time.sleep(2)
        broker.start()

    wait_until(lambda: kept(broker) == 0, "the message is redelivered and acknowledged")
    assert refunded(due)
    assert worker.exit_code() is None
    assert merchant.get("/balance").json()["data"]["balance"] == 100


def test_workers_and_scheduler_start_before_their_broker(broker: Broker, crew: Crew) -> None:
    merchant = make_merchant()
    broker.kill()
    due, _ = buy_and_reject(merchant)
    worker, beat = crew.worker(), crew.beat("sweep-refunds")
    time.sleep(5)
    broker.start()

    wait_until(lambda: refunded(due), "the sweep finds the refund")
    assert worker.exit_code() is None
    assert beat.exit_code() is None


@pytest.mark.rabbitmq
def test_a_message_that_waits_for_a_long_file_ends_no_worker() -> None:
    """RabbitMQ closes the channel of a worker that holds a message for too long. The worker has one
    process, and receives the next message while it builds a file."""
    with (
        running_rabbitmq(patience=3) as broker,
        running_crew(broker.url) as crew,
        Connection(broker.url) as connection,
    ):
        for seconds in (12, 0):
            sleep.apply_async((seconds,), queue="files", producer=connection.Producer())
        worker = crew.imports_worker(app="labs.crashes.slow_files")
        wait_until(lambda: len(worker.events("task_succeeded")) >= 2, "both tasks", 60)

        assert "delivery acknowledgement on channel 1 timed out" in worker.log
        assert worker.exit_code() is None


def test_a_killed_scheduler_can_be_restarted(broker: Broker, crew: Crew) -> None:
    """A kill -9 may leave a corrupt schedule file."""
    merchant = make_merchant()
    crew.worker()
    beat = crew.beat("sweep-refunds")
    wait_until(beat.schedule_files, "beat has written its schedule")
    beat.kill()
    for file in beat.schedule_files():
        file.write_bytes(b"half a file")
    due, _ = buy_and_reject(merchant)
    with broker.client() as client:
        client.flushall()

    beat.start()

    wait_until(lambda: refunded(due), "the sweep of the new scheduler")
