"""When the cache fails, purchases still succeed, and the log reports uncounted requests."""

import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from embedded.environment import Addresses
from embedded.locks import FileLock
from embedded.processes import Process, free_port
from embedded.valkey import running_valkey
from tests.factories import Merchant, make_merchant, make_product
from tests.live import HOST, LiveServer, live_server

pytestmark = pytest.mark.django_db(transaction=True)

NOT_COUNTED = "rate_limit_not_counted"


def test_purchases_succeed_when_the_cache_is_killed() -> None:
    with own_valkey() as (url, valkey), live_server({"REDIS_URL": url}, workers=1) as server:
        merchant, product = make_buyer(server), make_product(price="1.00", codes=40).pk
        buy(merchant, product, times=10)
        assert NOT_COUNTED not in server.log

        valkey.popen.kill()
        valkey.wait()

        seconds = buy(merchant, product, times=20)
        assert server.log.count(NOT_COUNTED) == 20
        assert statistics.median(seconds) < 0.2, seconds


def test_an_unresponsive_cache_delays_a_purchase_by_less_than_a_second() -> None:
    with silent_listener() as port:
        environment = {"REDIS_URL": f"redis://{HOST}:{port}/0"}
        with live_server(environment, workers=1) as server:
            merchant, product = make_buyer(server), make_product(price="1.00", codes=5).pk
            seconds = buy(merchant, product, times=5)
            assert server.log.count(NOT_COUNTED) == 5
            # Two attempts of a quarter of a second each (config/settings.py, cache).
            assert max(seconds) < 1.0, seconds


def make_buyer(server: LiveServer) -> Merchant:
    merchant = make_merchant(rate_limit_per_minute=100_000)
    merchant.http = server.http
    return merchant


def buy(merchant: Merchant, product: int, *, times: int) -> list[float]:
    """The seconds that each purchase took. Asserts that all succeed."""
    seconds = []
    for _ in range(times):
        before = time.monotonic()
        assert merchant.buy(product_id=product, quantity=1).status_code == 201
        seconds.append(time.monotonic() - before)
    return seconds


@contextmanager
def own_valkey() -> Iterator[tuple[str, Process]]:
    """Runs a Valkey for this test only, because other tests use the suite's. Yields its URL."""
    addresses = Addresses.fresh()
    with (
        tempfile.TemporaryDirectory(prefix="voucher-") as place,
        FileLock(Path(place) / "servers.lock") as lock,
        running_valkey(
            Path(place) / "valkey",
            port=addresses.valkey_port,
            password=addresses.valkey_password,
            lock=lock,
            durable=False,
        ) as process,
    ):
        yield addresses.urls()["REDIS_URL"], process


@contextmanager
def silent_listener() -> Iterator[int]:
    """A server that accepts connections and never sends anything. Yields its port."""
    with socket.create_server((HOST, free_port())) as listener:
        yield listener.getsockname()[1]
