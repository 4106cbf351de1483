"""Merchants that buy all the time, and retry as the contract says until each outcome is known."""

import http.client
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
from typing import Any, Protocol

from tests.concurrency.racing import outcome, start
from tests.live import Answer

LOST = (OSError, http.client.HTTPException)
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
    at: float = field(default_factory=time.monotonic)

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.answer.json()["data"]
        return found


@dataclass
class Buyers:
    """Buys the bodies in turn with these API keys, at any of the `servers`.

    `servers` may be replaced at any time. With `reads_abandoned`, a process may be killed after the
    commit and before its response: the order is then read, as the contract says. `seen` counts the
    result of each request, and `lost` the lost requests of each purchase.
    """

    api_keys: Sequence[str]
    bodies: Sequence[dict[str, Any]]
    servers: Sequence[Server]
    reads_abandoned: bool = False
    bought: list[Bought] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)  # by idempotency key

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
        while not over.wait(PAUSE):
            self.bought.append(self._buy(random.choice(self.api_keys), random.choice(self.bodies)))

    def _buy(self, api_key: str, body: dict[str, Any]) -> Bought:
        """Sends one purchase until it has succeeded. Any answer but a success or a wait fails."""
        key, began = str(uuid.uuid4()), time.monotonic()
        while True:
            answer = self.send(random.choice(self.servers), api_key=api_key, key=key, body=body)
            found = "connection lost" if answer is None else outcome(answer)
            self.seen[found] += 1
            self.lost[key] += answer is None
            seconds = time.monotonic() - began
            if answer is not None and found in ("bought", "replayed"):
                return Bought(key, api_key, body, answer, seconds)
            if answer is not None and found == "request_abandoned" and self.reads_abandoned:
                order = self._read(answer.json()["error"]["reference"], api_key=api_key)
                return Bought(key, api_key, body, order, seconds)
            assert found in ("connection lost", "request_in_progress"), (found, answer)
            assert seconds < PATIENCE, f"no success within {PATIENCE} s: {found}"
            time.sleep(PAUSE)

    def _read(self, reference: str, *, api_key: str) -> Answer:
        answer = random.choice(self.servers).http.get(
            f"/api/v1/orders/{reference}", headers={"Authorization": f"Bearer {api_key}"}
        )
        assert answer.status_code == HTTPStatus.OK, answer
        return answer
