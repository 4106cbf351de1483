"""Bodies that arrive slowly or never. Strangers together hold one thread of a process at most.

The server has one process with WEB_THREADS threads, and more strangers than that.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from urllib.parse import urlencode

import pytest

from embedded.commands import WEB_THREADS
from tests.api.raw import Wire, head
from tests.contract.situations import make_shop, money
from tests.live import LiveServer, live_server
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = "/api/v1/orders"
FORM = "application/x-www-form-urlencoded"
TOKEN = "a" * 32
COOKIE = {"Cookie": f"csrftoken={TOKEN}"}
PURCHASE_SECONDS = 5.0  # on a busy machine; a held thread would hold it for ever
SIGN_IN = urlencode({"csrfmiddlewaretoken": TOKEN, "username": "a@b.example", "password": "x"})


@pytest.fixture
def server(django_db_setup: None) -> Iterator[LiveServer]:
    """A server of its own for each test, because a slow body holds one of its threads."""
    with live_server(workers=1) as server:
        yield server


def start_of(
    path: str, headers: dict[str, str] | None = None, *, length: int = 100, chunked: bool = False
) -> bytes:
    """The head of a POST request whose body is still to come."""
    size = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(length)}
    return head("POST", path, {**size, "Content-Type": FORM, **(headers or COOKIE)})


STRANGERS = {
    "no key": start_of(ORDERS),
    "no key, chunked": start_of(ORDERS, chunked=True),
    "a wrong key": start_of(
        ORDERS, {"Authorization": "Bearer wrong", "Content-Type": "application/json"}
    ),
    "a wrong key, chunked": start_of(ORDERS, {"Authorization": "Bearer wrong"}, chunked=True),
    "a GET path": start_of("/api/v1/ping"),
    "the document": start_of("/api/v1/openapi.json"),
    "the document, chunked": start_of("/api/v1/openapi.json", chunked=True),
    "a probe": start_of("/healthz"),
    "an unknown path": start_of("/nothing"),
    "an unknown API path, chunked": start_of("/api/v9/nothing", chunked=True),
    "the documentation": start_of("/docs/"),
    "a static file": start_of("/static/none.css"),
    "signing in, chunked": start_of("/merchant/sign-in/", chunked=True),
}
READ_BY_FORMS = {
    "signing in": start_of("/merchant/sign-in/"),
    "signing in with parts": start_of(
        "/merchant/sign-in/", {**COOKIE, "Content-Type": "multipart/form-data; boundary=x"}
    ),
    "signing in as staff": start_of("/admin/login/"),
    "a page of members": start_of("/merchant/people/invite/"),
    "importing references": start_of("/merchant/references/import/"),
    "a page of staff": start_of("/admin/"),
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_the_answer_does_not_wait_for_the_body(live: LiveServer, stranger: str) -> None:
    with Wire(live) as wire:
        began = time.monotonic()
        wire.send(STRANGERS[stranger])
        answer = wire.read()
        assert time.monotonic() - began < PURCHASE_SECONDS
    assert 400 <= answer.status < 500


@pytest.mark.parametrize("stranger", STRANGERS)
def test_a_client_is_told_that_the_connection_ends(live: LiveServer, stranger: str) -> None:
    """Otherwise its next request on this connection would be lost."""
    with Wire(live) as wire:
        wire.send(STRANGERS[stranger])
        assert wire.read().headers.get("Connection") == "close"
        assert wire.rest() == b""


def test_the_connection_stays_when_the_body_was_read(live: LiveServer) -> None:
    with Wire(live) as wire:
        for _ in range(2):
            start = start_of("/merchant/sign-in/", length=len(SIGN_IN))
            wire.send(start, SIGN_IN.encode())
            answer = wire.read()
            assert (answer.status, answer.headers.get("Connection")) == (200, None)


def sell(server: LiveServer, times: int) -> float:
    """Buys that often; returns the longest time that one purchase took."""
    shop = make_shop(price="1.00", codes=times)
    shop.merchant.http = server.http
    longest = 0.0
    for _ in range(times):
        began = time.monotonic()
        assert shop.buy().status_code == 201
        longest = max(longest, time.monotonic() - began)
    return longest


def test_slow_strangers_do_not_stop_purchases(server: LiveServer) -> None:
    with ExitStack() as stack:
        for begun in 10 * [*STRANGERS.values(), *READ_BY_FORMS.values()]:
            stack.enter_context(Wire(server)).send(begun)
        assert sell(server, 10) < PURCHASE_SECONDS
    assert money().orders == 10


def test_a_stream_of_slow_strangers_does_not_stop_purchases(server: LiveServer) -> None:
    stop = threading.Event()

    def attack() -> None:
        with ExitStack() as stack:
            while not stop.wait(0.1):
                for begun in READ_BY_FORMS.values():
                    with suppress(OSError):
                        stack.enter_context(Wire(server)).send(begun)

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        time.sleep(1)
        assert sell(server, 20) < PURCHASE_SECONDS
    finally:
        stop.set()
        attacker.join()


def test_a_form_that_arrives_in_pieces_is_read(live: LiveServer) -> None:
    with Wire(live) as wire:
        wire.send(start_of("/merchant/sign-in/", length=len(SIGN_IN)))
        for place in range(0, len(SIGN_IN), 20):
            time.sleep(0.2)
            wire.send(SIGN_IN[place : place + 20].encode())
        answer = wire.read()
    assert (answer.status, b"password" in answer.body) == (200, True)


def sign_in(server: LiveServer) -> int:
    with Wire(server) as wire:
        wire.send(start_of("/merchant/sign-in/", length=len(SIGN_IN)), SIGN_IN.encode())
        return wire.read().status


def test_one_slow_form_is_read_and_the_others_are_refused(server: LiveServer) -> None:
    with Wire(server) as slow:
        slow.send(start_of("/merchant/sign-in/", length=len(SIGN_IN)), SIGN_IN[:10].encode())
        wait_until(lambda: sign_in(server) == 503, "the slow form is being read")
        assert [sign_in(server) for _ in range(5)] == [503] * 5
        assert sell(server, 3) < PURCHASE_SECONDS
        slow.send(SIGN_IN[10:].encode())
        assert slow.read().status == 200
    assert sign_in(server) == 200


def test_a_visitor_who_disconnects_makes_room_for_the_next(server: LiveServer) -> None:
    with Wire(server) as slow:
        slow.send(start_of("/merchant/sign-in/", length=len(SIGN_IN)), SIGN_IN[:10].encode())
        wait_until(lambda: sign_in(server) == 503, "the slow form is being read")
    wait_until(lambda: sign_in(server) == 200, "there is room again")


def test_control_slow_merchants_hold_every_thread(server: LiveServer) -> None:
    """Who has a key is read at once, so a proxy must buffer bodies (docs/operate/proxies.md)."""
    shop = make_shop(codes=10)
    shop.merchant.http = server.http
    begun = start_of(
        ORDERS,
        {
            "Authorization": f"Bearer {shop.merchant.key}",
            "Content-Type": "application/json",
            "Idempotency-Key": "slow",
        },
    )
    with ExitStack() as stack:
        for _ in range(WEB_THREADS):
            stack.enter_context(Wire(server)).send(begun)
        time.sleep(0.5)
        another = stack.enter_context(Wire(server))
        another.send(head("GET", "/healthz", {}))
        with pytest.raises(TimeoutError):
            another.read_within(1.0)
    assert shop.buy().status_code == 201
