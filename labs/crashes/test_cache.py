"""When the cache fails, purchases still succeed, and the log reports the outage once."""

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.cache import PAUSE_SECONDS
from embedded.commands import WEB_THREADS
from tests.factories import Merchant, make_merchant, make_product
from tests.listeners import silent_server
from tests.live import API, HOST, LiveServer, live_server
from tests.tasks.running import running_broker

pytestmark = pytest.mark.django_db(transaction=True)

LOST = '"event":"cache_lost"'


def test_purchases_succeed_when_the_cache_is_killed() -> None:
    with (
        running_broker() as valkey,
        live_server({**API, "REDIS_URL": valkey.url}, workers=1) as server,
    ):
        merchant, product = make_buyer(server), make_product(price="1.00", codes=40).pk
        before = buy(merchant, product, times=10)
        assert LOST not in server.log

        valkey.kill()

        seconds = buy(merchant, product, times=20)
        assert server.log.count(LOST) == 1
        assert statistics.median(seconds) < statistics.median(before) + 0.2, (before, seconds)


def test_an_unresponsive_cache_delays_few_purchases() -> None:
    """A request that the cache delays opens a connection to it, so connections are counted."""
    with silent_server() as cache:
        environment = {**API, "REDIS_URL": f"redis://{HOST}:{cache.port}/0"}
        with live_server(environment, workers=1) as server:
            merchant, product = make_buyer(server), make_product(price="1.00", codes=80).pk
            began = time.monotonic()
            with ThreadPoolExecutor(4) as buyers:
                list(buyers.map(lambda _: buy(merchant, product, times=20), range(4)))
            pauses = 1 + int((time.monotonic() - began) / PAUSE_SECONDS)
            # At the beginning every thread of the process may wait; after each pause, only one.
            assert cache.connections <= WEB_THREADS + pauses
            assert server.log.count(LOST) == 1


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
