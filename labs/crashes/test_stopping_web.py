"""SIGTERM ends the web server every time, and cuts off no request."""

import http.client
import json
import os
import random
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from embedded.commands import services
from embedded.environment import PROJECT
from embedded.processes import Process, free_port
from orders.models import Order
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import start
from tests.factories import Merchant, make_account, make_client, make_product
from tests.live import HOST, database_url
from tests.neighbour import ours
from tests.quick_starts import QuickProcess

STOPS = int(os.environ.get("CRASHES_STOPS", "20"))
GRACE = 30.0  # seconds: --workers-kill-timeout kills what is left then, so no stop may need it
PATIENCE = 90.0  # seconds: many starts on a busy machine
CLIENTS = 6


class Load:
    """Clients that buy without a pause, half of them over connections that they keep."""

    def __init__(self, port: int) -> None:
        self.port = port
        account = make_account(balance="100000.00")
        self.key = Merchant(make_client(account, rate_limit_per_minute=1_000_000)).key
        self.product = make_product(price="1.00", codes=5000).pk
        self.outcomes: Counter[str] = Counter()
        self._over = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [start(pool, self._buy, number % 2 == 0) for number in range(CLIENTS)]
            try:
                yield
            finally:
                self._over.set()
        for client in clients:
            client.result()

    @property
    def bought(self) -> int:
        return self.outcomes["201"]

    def _buy(self, keep: bool) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._over.is_set():
            if connection is None:
                connection = self._connect()
                continue
            outcome = self._send(connection, keep)
            self.outcomes[outcome] += 1
            if connection.sock is None or not keep:
                connection.close()
                connection = None

    def _connect(self) -> http.client.HTTPConnection | None:
        """A new connection; None if it is refused, which costs no request."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=GRACE)
        try:
            connection.connect()
        except OSError:
            self.outcomes["refused"] += 1
            self._over.wait(0.1)
            return None
        return connection

    def _send(self, connection: http.client.HTTPConnection, keep: bool) -> str:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid.uuid4()),
        }
        if not keep:
            headers["Connection"] = "close"
        body = json.dumps({"product_id": self.product, "quantity": 1})
        try:
            connection.request("POST", "/api/v1/orders", body, headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return f"cut off: {type(error).__name__}"
        if answer.will_close:
            connection.close()
        return str(answer.status)


@pytest.mark.django_db(transaction=True)
def test_many_stops_cut_off_no_request() -> None:
    """Every second stop comes while the server starts, the others while it sells."""
    port = free_port()
    load = Load(port)
    with load.running():
        for number in range(STOPS):
            web = serve(port, DATABASE_URL=database_url())
            if number % 2:
                time.sleep(random.uniform(0, 1))
            else:
                wait_for_purchases(load, web, more=CLIENTS)
            assert seconds_to_stop(web) < GRACE

    cut_off = {name: count for name, count in load.outcomes.items() if "cut off" in name}
    assert not cut_off, load.outcomes
    assert load.outcomes.keys() <= {"201", "refused"}
    assert load.bought == ours(Order).count() > STOPS
    assert_books_balance()


def test_a_signal_during_the_start_ends_the_server() -> None:
    assert ends_while_starting(handle_signals=True)


def test_control_without_our_handler_the_server_never_ends() -> None:
    """Granian's process still has its master's handler, which ignores the signal there."""
    assert not ends_while_starting(handle_signals=False)


def ends_while_starting(*, handle_signals: bool) -> bool:
    """Whether the server ends when it is asked to stop while it loads. One that ends takes a second
    or two; one that does not is given up after six."""
    web = serve(
        free_port(),
        application="labs.crashes.stopped_while_starting:application",
        HANDLE_SIGNALS=str(int(handle_signals)),
    )
    try:
        web.popen.wait(PATIENCE if handle_signals else 6)
    except subprocess.TimeoutExpired:
        return False
    finally:
        web.stop(timeout=0)
    return True


def serve(port: int, *, application: str | None = None, **environment: str) -> Process:
    """Starts the web server of `make run` and production, and does not wait for it."""
    web = next(one for one in services(host=HOST, port=port, var=PROJECT) if one.name == "web")
    command = [*web.command[:-1], application or web.command[-1]]
    settings = {**os.environ, "GRANIAN_WORKERS": "1", "LOG_LEVEL": "ERROR", **environment}
    return QuickProcess("web", command, environment=settings, folder=PROJECT, log=Path(os.devnull))


def wait_for_purchases(load: Load, web: Process, *, more: int) -> None:
    deadline, enough = time.monotonic() + PATIENCE, load.bought + more
    while load.bought < enough:
        assert web.exit_code() is None, "the web server ended by itself"
        assert time.monotonic() < deadline, f"no purchases: {load.outcomes}"
        time.sleep(0.02)


def seconds_to_stop(web: Process) -> float:
    """Asks the server to stop; kills it after GRACE seconds."""
    began = time.monotonic()
    web.stop(timeout=GRACE)
    return time.monotonic() - began
