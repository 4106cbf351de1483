"""Clients that buy without a pause while a test kills servers, and reconcile afterwards.

The clients follow the contract: a new key for each purchase and, after a failure, the same request
with the same key until the outcome is known.
"""

import http.client
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import outcome, race, rows, start
from tests.factories import Merchant, make_account, make_client, make_product
from tests.live import Answer, LiveServer

LOST = (OSError, http.client.HTTPException)
WINDOW = 2  # seconds, IDEMPOTENCY_IN_PROGRESS_SECONDS of the servers in these tests
TIMEOUT = 60.0  # seconds


@dataclass
class Sent:
    """One purchase, and the response to each of its requests; None for a lost connection."""

    merchant: Merchant
    key: str
    product_id: int
    quantity: int
    answers: list[Answer | None] = field(default_factory=list)

    def send(self) -> Answer | None:
        try:
            answer: Answer | None = self.merchant.buy(
                self.key, product_id=self.product_id, quantity=self.quantity
            )
        except LOST:
            answer = None
        self.answers.append(answer)
        return answer

    @property
    def acknowledged(self) -> list[Answer]:
        answers = (answer for answer in self.answers if answer is not None)
        return [answer for answer in answers if answer.status_code == 201]


class Burst:
    """Four clients of two accounts, and three shelves with more codes than the clients buy."""

    def __init__(self, server: LiveServer, *, codes: int = 2500) -> None:
        accounts = [make_account(balance="100000.00") for _ in range(2)]
        self.server = server
        self.merchants = [
            Merchant(make_client(account, rate_limit_per_minute=1_000_000))
            for account in accounts
            for _ in range(2)
        ]
        for merchant in self.merchants:
            merchant.http = server.http
        self.products = [make_product(price="1.25", codes=codes).pk for _ in range(3)]
        self.sent: list[Sent] = []

    @contextmanager
    def running(self, threads: int = 8) -> Iterator[None]:
        """Buys in this many threads until the block ends."""
        over = threading.Event()
        with ThreadPoolExecutor(threads) as pool:
            buyers = [start(pool, self._buy_until, over) for _ in range(threads)]
            try:
                yield
            finally:
                over.set()
                wait(buyers)
        for buyer in buyers:
            buyer.result()

    def _buy_until(self, over: threading.Event) -> None:
        while not over.is_set():
            answer = self.new_purchase().send()
            if answer is None or answer.status_code >= 500:
                over.wait(0.05)  # a server is down: a short pause before the next purchase

    def new_purchase(self) -> Sent:
        """A purchase that is not sent yet; `settle` includes it."""
        sent = Sent(
            merchant=random.choice(self.merchants),
            key=str(uuid.uuid4()),
            product_id=random.choice(self.products),
            quantity=random.choice([1, 1, 3]),
        )
        self.sent.append(sent)
        return sent

    def send_in_background(self, pool: ThreadPoolExecutor) -> Future[Answer | None]:
        """Sends one purchase of the first client in a thread; `settle` includes it."""
        self.sent.append(Sent(self.merchants[0], str(uuid.uuid4()), self.products[0], 1))
        return start(pool, self.sent[-1].send)

    def settle(self, *, replays: bool = True) -> Counter[str]:
        """Retries every key until its outcome is known, then compares the outcomes with the books.

        With `replays=False`, only the keys without an acknowledged purchase are retried. Returns
        the number of retried keys by the outcome of their last request.
        """
        known = [] if replays else [sent for sent in self.sent if sent.acknowledged]
        self.references = {
            sent.key: sent.acknowledged[0].json()["data"]["reference"] for sent in known
        }
        queue = iter([sent for sent in self.sent if sent.key not in self.references])
        turn = threading.Lock()

        def work() -> Counter[str]:
            told: Counter[str] = Counter()
            while True:
                with turn:
                    sent = next(queue, None)
                if sent is None:
                    return told
                told[self._settle(sent)] += 1

        told = sum(race([work] * 8), Counter[str]())
        self._compare()
        return told

    def _settle(self, sent: Sent) -> str:
        deadline = time.monotonic() + TIMEOUT
        while True:
            answer = sent.send()
            found = "lost" if answer is None else outcome(answer)
            if answer is not None and found in ("bought", "replayed"):
                self.references[sent.key] = answer.json()["data"]["reference"]
                assert len({each.content for each in sent.acknowledged}) == 1, sent.key
                return found
            if answer is not None and found == "request_abandoned":
                self.references[sent.key] = self._read_abandoned(sent, answer)
                return found
            assert found in ("lost", "request_in_progress", "server_error"), found
            assert time.monotonic() < deadline, f"unknown outcome after {TIMEOUT} s: {found}"
            time.sleep(0.1)

    def _read_abandoned(self, sent: Sent, answer: Answer) -> str:
        reference = str(answer.json()["error"]["reference"])
        order = sent.merchant.get(f"/orders/{reference}").json()["data"]
        assert len(order["codes"]) == order["quantity"] == sent.quantity
        assert order["product_id"] == sent.product_id
        return reference

    def _compare(self) -> None:
        assert len(self.references) == len(self.sent)
        for sent in self.sent:
            for answer in sent.acknowledged:
                shown = answer.json()["data"]["reference"]
                assert shown == self.references[sent.key], "not the acknowledged order"
        assert self.orders() == set(self.references.values()), "orders do not match the keys"
        assert len(set(self.references.values())) == len(self.sent), "two keys share an order"
        assert_books_balance()

    def orders(self) -> set[str]:
        """The references of all orders of these clients in the database."""
        clients = [merchant.client.pk for merchant in self.merchants]
        query = "SELECT reference FROM orders_order WHERE client_id = ANY(%s)"
        return {reference for (reference,) in rows(query, clients)}
