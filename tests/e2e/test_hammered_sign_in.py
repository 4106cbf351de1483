"""Purchases go on while an attacker tries passwords as fast as they can, over real HTTP."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from axes.models import AccessAttempt

from embedded.commands import WEB_THREADS
from tests.browsing import PASSWORD
from tests.factories import make_account, make_merchant, make_product
from tests.live import LiveServer, live_server, with_settings
from tests.merchants.people import make_member
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

GUESSERS = 4
LIMIT = 3
PURCHASES = 40
LOOPS, SIGN_INS = 4, 12
FEW_HASHES = {"LOGIN_FAILURE_LIMIT_PER_ADDRESS": str(LIMIT)}
MANY_HASHES = with_settings(
    LOGIN_FAILURE_LIMIT_PER_ADDRESS=100_000,
    AXES_FAILURE_LIMIT=100_000,
    LOGIN_ATTEMPTS_PER_ADDRESS=100_000,
)
TOKEN = "a" * 32  # of a browser: the cookie and the form carry the same
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={TOKEN}"}


@contextmanager
def hammering(server: LiveServer) -> Iterator[Counter[int]]:
    """Tries passwords for many names from one address. Yields how often each status was sent."""
    statuses: Counter[int] = Counter()
    stop = threading.Event()

    def guess(guesser: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            body = urlencode(
                {
                    "csrfmiddlewaretoken": TOKEN,
                    "username": f"name{guesser}-{number}@merchant.example",
                    "password": "wrong",
                }
            )
            answer = server.http.request("POST", "/merchant/sign-in/", body.encode(), FORM)
            statuses[answer.status_code] += 1

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(GUESSERS)]
    for thread in threads:
        thread.start()
    try:
        while sum(statuses.values()) < 2 * LIMIT:  # until the hammering has begun
            threads[0].join(0.01)
        yield statuses
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def buy(server: LiveServer) -> None:
    merchant = make_merchant(rate_limit_per_minute=100_000)
    merchant.http = server.http
    product = make_product(price="1.00", codes=PURCHASES).pk
    for _ in range(PURCHASES):
        assert merchant.buy(product_id=product, quantity=1).status_code == 201


def hashed_guesses() -> int:
    return sum(AccessAttempt.objects.values_list("failures_since_start", flat=True))


def test_refused_guesses_cost_purchases_no_hash() -> None:
    with live_server(FEW_HASHES, workers=1) as server, hammering(server) as statuses:
        buy(server)
        wait_until(lambda: statuses[429] > GUESSERS, "guesses are refused")

    # The other threads may have passed the limit just before the last allowed guess was counted.
    assert LIMIT <= hashed_guesses() < LIMIT + WEB_THREADS
    assert set(statuses) <= {200, 429, 503}


def test_control_without_the_limit_each_free_moment_goes_into_a_hash() -> None:
    with live_server(MANY_HASHES, workers=1) as server, hammering(server) as statuses:
        buy(server)
        wait_until(lambda: statuses[200] > LIMIT + WEB_THREADS, "more guesses than the limit")

    assert hashed_guesses() == statuses[200] > LIMIT + WEB_THREADS
    assert 429 not in statuses


def test_right_passwords_in_a_loop_keep_nobody_from_signing_in() -> None:
    """Both people use one address."""
    account = make_account()
    owner, viewer = (make_member(account, email=f"{name}@a.example").user for name in "ov")
    with live_server(workers=1) as server, looping(server, viewer.username) as told:
        wait_until(lambda: told[302] > 0, "the loop signs in")
        statuses = [sign_in(server, owner.username) for _ in range(SIGN_INS)]

    assert statuses == [302] * SIGN_INS
    assert told[302] > 1
    assert told.keys() <= {302, 429, 503}


@contextmanager
def looping(server: LiveServer, name: str) -> Iterator[Counter[int]]:
    """Signs in with the right password in LOOPS threads without a pause. Yields the statuses."""
    told: Counter[int] = Counter()
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set():
            told[sign_in(server, name)] += 1

    threads = [threading.Thread(target=loop) for _ in range(LOOPS)]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def sign_in(server: LiveServer, name: str) -> int:
    body = urlencode({"csrfmiddlewaretoken": TOKEN, "username": name, "password": PASSWORD})
    return server.http.request("POST", "/merchant/sign-in/", body.encode(), FORM).status_code
