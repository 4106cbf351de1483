"""Merchants that buy all the time, and retry as the contract says until each outcome is known.

`assert_no_purchase_failed_or_doubled` compares what they were told with the orders.
"""

import http.client
import itertools
import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Protocol, Self

from tests.answers import WrongAnswer
from tests.concurrency.racing import outcome, rows, start
from tests.factories import make_account, make_client, make_key, make_product
from tests.live import Answer
from tests.tasks.running import wait_until

LOST = (OSError, http.client.HTTPException)
WINDOW = 2  # seconds: IDEMPOTENCY_IN_PROGRESS_SECONDS of servers that a test kills
PATIENCE = 60.0  # seconds until a purchase must have succeeded
PAUSE = 0.05  # seconds between two purchases of one buyer, and before a retry


class HttpClient(Protocol):
    def post(
        self, path: str, data: str, *, content_type: str, headers: Mapping[str, str]
    ) -> Answer:
        """The response. Raises an error of LOST if the connection was lost."""

    def get(self, path: str, *, headers: Mapping[str, str]) -> Answer:
        """The response, which may also be lost."""


class Server(Protocol):
    @property
    def http(self) -> HttpClient: ...


@dataclass
class Bought:
    """A purchase: its request, the response, how long it took with all retries, and its end."""

    key: str
    api_key: str
    body: dict[str, Any]
    answer: Answer
    seconds: float
    tries: int = 1
    end: str = "bought"  # or `replayed`, or `request_abandoned`: the order was read
    at: float = field(default_factory=time.monotonic)

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.answer.json()["data"]
        return found


@dataclass
class Buyers:
    """Buys the bodies in turn with these API keys, at any of the `servers`.

    `servers` may be replaced at any time. With `reads_abandoned`, a process or the database may be
    killed after the commit and before its response: the order is then read, as the contract says.
    `seen` counts the result of each request, and `lost` the lost requests of each purchase.
    """

    api_keys: Sequence[str]
    bodies: Sequence[dict[str, Any]]
    servers: Sequence[Server]
    reads_abandoned: bool = False
    pause: float = PAUSE
    patience: float = PATIENCE
    bought: list[Bought] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)  # by idempotency key

    @classmethod
    def with_shop(cls, server: Server, *, codes: int) -> Self:
        """Four clients of two accounts, and three products with so many codes each."""
        accounts = [make_account(balance="100000.00") for _ in range(2)]
        clients = [make_client(each, rate_limit_per_minute=1_000_000) for each in accounts * 2]
        bodies = [
            {"product_id": make_product(price="1.25", codes=codes).pk, "quantity": quantity}
            for quantity in (1, 1, 3)
        ]
        return cls(list(map(make_key, clients)), bodies, [server], reads_abandoned=True)

    @property
    def references(self) -> set[str]:
        """The orders of all purchases so far."""
        return {one.data["reference"] for one in list(self.bought)}  # threads append to it

    @property
    def longest_pause(self) -> float:
        """Seconds between two purchases."""
        times = sorted(one.at for one in self.bought)
        return max(later - sooner for sooner, later in pairwise(times))

    def between(self, first: float, last: float) -> list[float]:
        """The milliseconds of the purchases that began in this time."""
        return [1000 * one.seconds for one in self.bought if first <= one.at - one.seconds < last]

    def wait_for_sales(self, more: int) -> None:
        enough = len(self.bought) + more
        wait_until(lambda: len(self.bought) >= enough, f"{more} more purchases", 180)

    @contextmanager
    def running(self, threads: int = 4) -> Iterator[None]:
        over = threading.Event()
        with ThreadPoolExecutor(threads) as pool:
            buyers = [start(pool, self._buy_until, over) for _ in range(threads)]
            try:
                yield
            finally:
                over.set()
        for buyer in buyers:
            buyer.result()

    def send(
        self, server: Server, *, api_key: str, key: str, body: dict[str, Any]
    ) -> Answer | None:
        """One request; None when the connection was lost."""
        try:
            return server.http.post(
                "/api/v1/orders",
                json.dumps(body),
                content_type="application/json",
                headers={"Authorization": f"Bearer {api_key}", "Idempotency-Key": key},
            )
        except LOST:
            return None

    def _buy_until(self, over: threading.Event) -> None:
        while not over.wait(self.pause):
            self.bought.append(self._buy(random.choice(self.api_keys), random.choice(self.bodies)))

    def _buy(self, api_key: str, body: dict[str, Any], key: str = "") -> Bought:
        """Sends one purchase until it has succeeded. Any answer but a success or a wait fails."""
        key, began = key or str(uuid.uuid4()), time.monotonic()
        for tries in itertools.count(1):
            answer = self.send(random.choice(self.servers), api_key=api_key, key=key, body=body)
            found = "connection lost" if answer is None else outcome(answer)
            self.seen[found] += 1
            self.lost[key] += answer is None
            seconds = time.monotonic() - began
            if answer is not None and found in ("bought", "replayed"):
                return Bought(key, api_key, body, answer, seconds, tries, found)
            if answer is not None and found == "request_abandoned" and self.reads_abandoned:
                order = self._read(answer.json()["error"]["reference"], api_key=api_key)
                return Bought(key, api_key, body, order, seconds, tries, found)
            again = {"connection lost", "request_in_progress"}
            again |= {"server_error"} if self.reads_abandoned else set()
            assert found in again, (found, answer)
            assert seconds < self.patience, f"no success within {self.patience} s: {found}"
            time.sleep(PAUSE)
        raise AssertionError

    def read(self, reference: str, *, api_key: str) -> Answer | None:
        """The order; None if the connection or the database was lost."""
        path, headers = f"/api/v1/orders/{reference}", {"Authorization": f"Bearer {api_key}"}
        try:
            answer = random.choice(self.servers).http.get(path, headers=headers)
        except LOST:
            answer = None
        except WrongAnswer as wrong:
            if "server_error" not in str(wrong):  # which the contract lists for purchases only
                raise
            answer = None
        self.seen[f"read {answer.status_code if answer else 'lost'}"] += 1
        return answer

    def _read(self, reference: str, *, api_key: str) -> Answer:
        until = time.monotonic() + self.patience
        while (answer := self.read(reference, api_key=api_key)) is None:
            assert time.monotonic() < until, f"{reference} cannot be read"
            time.sleep(PAUSE)
        assert answer.status_code == HTTPStatus.OK, answer
        return answer


def assert_no_purchase_failed_or_doubled(*buyers: Buyers, earlier: Sequence[str] = ()) -> None:
    """Each purchase has an order of its own, and each order a purchase that its merchant knows.

    `earlier` are the references of orders that were there before.
    """
    ordered = {reference for (reference,) in rows("SELECT reference FROM orders_order")}
    ordered -= set(earlier)
    bought = [one for each in buyers for one in each.bought]
    assert len(bought) == len({one.data["reference"] for one in bought})
    assert {one.data["reference"] for one in bought} == ordered
    codes = [code["code"] for one in bought for code in one.data["codes"]]
    assert len(codes) == len(set(codes))
    seen = sum((each.seen for each in buyers), Counter())
    assert seen["bought"] + seen["replayed"] + seen["request_abandoned"] == len(ordered)
