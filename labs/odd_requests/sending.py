"""Sends odd requests inside this process, through the WSGI application, and judges the answers."""

import io
import json
import uuid
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from django.core.wsgi import get_wsgi_application

from core.http.body_limits import lazy_chunked_bodies
from labs.odd_requests.making import FRESH, REPLAYS, Odd, repeats, requests
from labs.odd_requests.world import World
from tests.answers import check_answer, read_json
from tests.concurrency.racing import rows
from tests.generating import HealthCheck, Phase, given, settings

# Sums and counts of everything that a purchase moves.
BOOKS = """
    SELECT (SELECT count(*) FROM orders_order) AS "orders",
           (SELECT coalesce(sum(total_price), 0) FROM orders_order) AS "their total",
           (SELECT coalesce(sum(balance), 0) FROM wallets_wallet) AS "balances",
           (SELECT count(*) FROM wallets_ledgerentry) AS "ledger entries",
           (SELECT coalesce(sum(available_stock), 0) FROM catalogue_shelf) AS "codes in stock",
           (SELECT coalesce(sum(available_stock), 0) FROM topups_topupproduct) AS "packages",
           (SELECT count(*) FROM topups_fulfilment) AS "fulfilments",
           (SELECT count(*) FROM topups_fulfilmentevent) AS "their events",
           (SELECT count(*) FROM idempotency_idempotencyrecord) AS "idempotency records",
           (SELECT coalesce(sum(orders), 0) FROM orders_clientcounter) AS "counted orders"
"""


@dataclass(frozen=True)
class Reply:
    """The response. `headers` have the names of the document."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def outcome(self) -> str:
        """`200`, `201`, an error code, or `message`."""
        if self.status in (200, 201):
            return str(self.status)
        body = json.loads(self.content)
        return "message" if set(body) == {"message"} else str(body["error"]["code"])


@dataclass
class Judge:
    """Sends each request and its repeats, and asserts that each answer is one of the expected."""

    world: World
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._application = lazy_chunked_bodies(get_wsgi_application())

    def try_one(self, odd: Odd) -> None:
        odd, before = _with_new_key(odd), books()
        reply = self._send(odd)
        moved = [self._moved(odd, reply)]
        for how in odd.again if reply.status == 201 else ():
            more = _with_new_key(repeats(odd, how))
            again = self._send(more)
            if how in REPLAYS:
                replayed = (again.content, "Idempotent-Replay" in again.headers)
                assert replayed == (reply.content, True), f"{how}: no replay"
            else:
                moved.append(self._moved(more, again))
        found = {name: value - before[name] for name, value in books().items()}
        for name, value in zip(found, map(sum, zip(*moved, strict=True)), strict=True):
            assert found[name] == value, f"{name} moved by {found[name]}, not by {value}"

    def _send(self, odd: Odd) -> Reply:
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            started[:] = [int(status[:3]), dict(headers)]
            return lambda data: None

        parts: Any = self._application(environ_of(odd), start_response)
        try:
            content = b"".join(parts)
        finally:
            parts.close()
        status, headers = started
        reply = Reply(status, headers, b"" if odd.method == "HEAD" else content)
        assert status < 500, f"{status}: {content[:300]!r}"
        if odd.method != "HEAD":
            self.counted[reply.outcome] += 1
            assert reply.outcome in odd.expected, f"{reply.outcome}: not one of {odd.expected}"
        path = unquote(odd.path, errors="replace")
        check_answer(odd.method, path, status=status, headers=headers, body=reply.content)
        return reply

    def _moved(self, odd: Odd, reply: Reply) -> list[Decimal]:
        """By how much each line of BOOKS must have moved: by 0 unless the answer is a purchase."""
        if reply.status != 201:
            return [Decimal(0)] * BOOKS.count(" AS ")
        assert "Idempotent-Replay" not in reply.headers, "a replay of what was not bought before"
        self.counted["bought"] += 1
        data = read_json(reply.content)["data"]
        price, codes = Decimal(data["total_price"]), len(data["codes"])
        topup = "delivery_type" in data
        package = topup and data["system_product_id"] in self.world.counted
        return [Decimal(by) for by in (1, price, -price, 1, -codes, -package, topup, topup, 1, 1)]


def try_many(world: World, *, count: int, control: bool = False) -> Counter[str]:
    """Sends `count` requests and their repeats, and counts the answers. Raises AssertionError with
    the smallest request that gets a wrong answer. A control stops at the first wrong answer, and
    sends the same requests each time."""
    judge = Judge(world)

    @settings(
        max_examples=count,
        phases=[Phase.generate] if control else [Phase.generate, Phase.shrink],
        derandomize=control,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(requests(world))
    def try_each(odd: Odd) -> None:
        judge.try_one(odd)

    try_each()
    return judge.counted


def books() -> dict[str, Decimal]:
    """The sums and counts by their names."""
    names = [part.partition('"')[0] for part in BOOKS.split(' AS "')[1:]]
    return dict(zip(names, map(Decimal, rows(BOOKS)[0]), strict=True))


def _with_new_key(odd: Odd) -> Odd:
    key = dict(odd.headers).get("Idempotency-Key", "")
    new = uuid.uuid4().hex[: len(FRESH)] if len(key) == 128 else uuid.uuid4().hex
    return odd.having("Idempotency-Key", key.replace(FRESH, new)) if FRESH in key else odd


def environ_of(odd: Odd) -> dict[str, Any]:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": odd.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(odd.path).decode("latin-1"),
        "QUERY_STRING": odd.query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "CONTENT_LENGTH": str(len(odd.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(odd.body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in odd.headers:
        variable = name.upper().replace("-", "_")
        known = "CONTENT_TYPE" if variable == "CONTENT_TYPE" else f"HTTP_{variable}"
        environ[known] = value.strip(" \t")  # as the server reads header values
    return environ
