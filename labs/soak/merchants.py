"""The load generator: merchants who follow the documented rules.

A process of its own without Django, because it shares two cores with the service. It reads what to
buy as JSON from stdin (`Orders`), one line; later lines start slow clients or end the run. Each
second it prints one line of JSON (`Generator.report`).

The rules: each purchase has a new key. After a lost connection, a 5xx or `request_in_progress`, the
same request is sent again with the same key. `request_abandoned` names the order, which is then
read. Any other 4xx is final. Nothing is bought twice, and what was given is written to a journal.
"""

import itertools
import json
import random
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import orjson

from labs.soak.purchases import Journal, Orders, Purchase, Queue, Tally, inconsistency
from labs.soak.wire import Lost, Reply, Wire

AFTER_A_FAILURE = 0.1  # seconds in which a merchant sends nothing: a server may be down
REMEMBERED = 50  # finished purchases of a thread, for replays
REPLAYS, CONFLICTS, READS = 0.02, 0.01, 0.02  # of all requests
# What the contract allows as an answer to a purchase. Others are wrong.
FINAL = {
    (404, "product_reference_not_found"),
    (409, "order_refused"),
    (422, "validation_failed"),
}
AGAIN = {(409, "request_in_progress"), (500, "server_error"), (429, "rate_limited")}


class Merchant(threading.Thread):
    """Sends one request at a time, for all clients in turn."""

    def __init__(self, orders: Orders, queue: Queue, tally: Tally, journal: Journal, n: int):
        super().__init__(name=f"merchant {n}")
        self._orders, self._queue, self._tally, self._journal = orders, queue, tally, journal
        self._chance = random.Random(orders.seed + 1 + n)
        self._wires: dict[int, Wire] = {}
        self._finished: deque[Purchase] = deque(maxlen=REMEMBERED)

    def run(self) -> None:
        while not self._queue.done:
            if self._queue.stopped and time.monotonic() > self._queue.patience:
                return
            if self._finished and self._chance.random() < REPLAYS:
                self._repeat(self._chance.choice(self._finished))
            if self._finished and self._chance.random() < READS:
                self._look(self._chance.choice(self._finished))
            if purchase := self._queue.next():
                self.send(purchase)
            else:
                time.sleep(0.02)

    def send(self, purchase: Purchase, *, parts: int = 1, pause: float = 0) -> None:
        """One request of the purchase, in so many parts, and what follows from the answer."""
        purchase.tries += 1
        began = time.monotonic()
        request = purchase.request()
        size = -(-len(request) // parts)
        try:
            reply = self._ask(
                *(request[at : at + size] for at in range(0, len(request), size)), pause=pause
            )
        except Lost:
            self._tally.answered("lost")
            self._queue.later(purchase)
            time.sleep(AFTER_A_FAILURE)
            return
        code = self._code(reply)
        first = purchase.tries == 1 and parts == 1 and reply.status == 201
        self._tally.answered(code, time.monotonic() - began if first else None)
        self._journal.sample(f"{purchase.kind} {code}", "POST", "/api/v1/orders", reply)
        if reply.status == 201:
            self._bought(purchase, reply)
        elif (reply.status, code) in AGAIN:
            self._queue.later(purchase)
            time.sleep(AFTER_A_FAILURE if reply.status >= 500 else 0)
        elif (reply.status, code) == (409, "request_abandoned"):
            self._read(purchase, orjson.loads(reply.content)["error"]["reference"])
        elif (reply.status, code) in FINAL and purchase.kind == "refused":
            self._end(purchase, "refused", None)
        else:
            self._journal.wrong(f"{purchase.kind} {purchase.key}: {reply.status} {code}")
            self._end(purchase, "wrong", None)

    def _bought(self, purchase: Purchase, reply: Reply) -> None:
        data = orjson.loads(reply.content)["data"]
        purchase.reference, purchase.content = data["reference"], reply.content
        codes = purchase.quantity if purchase.kind == "voucher" else 0
        if purchase.kind == "refused" or len(data["codes"]) != codes:
            self._journal.wrong(f"{purchase.kind} {purchase.key}: an unexpected order")
        if purchase.tries == 1 and reply.replayed:
            self._journal.wrong(f"{purchase.key}: a replay of what was never sent before")
        self._end(purchase, "replayed" if reply.replayed else "bought", data)

    def _read(self, purchase: Purchase, reference: str) -> None:
        """Reads the order that `request_abandoned` named; the key stays open until it is read."""
        try:
            reply, code = self._get(purchase, reference)
        except Lost:
            self._queue.later(purchase)
            return
        if reply.status == 200:
            purchase.reference = reference
            self._end(purchase, "abandoned", orjson.loads(reply.content)["data"])
        elif (reply.status, code) in AGAIN:
            self._queue.later(purchase)
        else:
            self._journal.wrong(f"{purchase.key}: GET {reference}: {reply.status} {code}")
            self._end(purchase, "wrong", None)

    def _look(self, purchase: Purchase) -> None:
        """Reads a top-up order again. No response may contradict itself or undo an earlier one."""
        if purchase.kind != "top_up":
            return
        try:
            reply, code = self._get(purchase, purchase.reference)
        except Lost:
            return
        self._tally.answered("read again")
        if reply.status == 200:
            order, before = orjson.loads(reply.content)["data"], purchase.shown
            purchase.shown = order
            if problem := inconsistency(order, before):
                self._journal.wrong(f"order {purchase.reference}: {problem}")
        elif (reply.status, code) not in AGAIN:
            self._journal.wrong(f"GET {purchase.reference}: {reply.status} {code}")

    def _get(self, purchase: Purchase, reference: str) -> tuple[Reply, str]:
        """The order, as the merchant of the purchase reads it. Raises Lost."""
        path = f"/api/v1/orders/{reference}"
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {purchase.bearer}\r\n\r\n"
        reply = self._ask(head.encode())
        code = self._code(reply)
        if code != "server_error":  # the document has no 500 for reads, but PostgreSQL is killed
            self._journal.sample(f"read {code}", "GET", path, reply)
        return reply, code

    def _repeat(self, purchase: Purchase) -> None:
        """Sends a finished purchase once more, or another one with its key. Neither buys."""
        conflict = self._chance.random() < CONFLICTS / (REPLAYS + CONFLICTS)
        body = purchase.body.replace(b"{", b'{"delivery_type":"voucher",', 1) if conflict else None
        if conflict and purchase.kind == "top_up":
            body = purchase.body.replace(b'"player_id":"', b'"player_id":"x', 1)
        try:
            reply = self._ask(purchase.request(body))
        except Lost:
            return
        code = self._code(reply)
        self._tally.answered("conflict" if conflict else "repeated")
        self._journal.sample(f"repeated {code}", "POST", "/api/v1/orders", reply)
        if reply.status >= 500 or code == "rate_limited":
            return
        if conflict:
            good = code == "idempotency_key_reused"
        elif reply.status == 201:
            good = reply.replayed and purchase.content in (b"", reply.content)
        elif code == "request_abandoned":
            good = orjson.loads(reply.content)["error"]["reference"] == purchase.reference
        else:  # the response was not stored: the key stays in progress until the window ends
            good = code == "request_in_progress"
        if not good:
            self._journal.wrong(f"repeated {purchase.key}: {reply.status} {code}")

    def _end(self, purchase: Purchase, outcome: str, data: dict[str, Any] | None) -> None:
        self._journal.write(purchase, outcome, data)
        with self._tally.lock:
            self._tally.outcomes[outcome] += 1
            if data is not None:
                self._tally.bought[purchase.kind] += 1
        self._queue.ended(purchase.kind)
        if data is not None:
            purchase.shown = data
            self._finished.append(purchase)

    def _ask(self, *parts: bytes, pause: float = 0) -> Reply:
        port = self._chance.choice(self._orders.ports)
        try:
            wire = self._wires.get(port) or self._wires.setdefault(port, Wire(port))
            return wire.ask(*parts, pause=pause)
        except Lost:
            if port in self._wires:
                self._wires.pop(port).close()
            raise

    def _code(self, reply: Reply) -> str:
        if reply.status in (200, 201):
            return str(reply.status)
        try:
            return str(orjson.loads(reply.content)["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return f"{reply.status} without a code"


class SlowMerchant(Merchant):
    """A client whose request takes seconds to arrive."""

    def __init__(self, *arguments: Any, seconds: float) -> None:
        super().__init__(*arguments)
        self._seconds = seconds

    def run(self) -> None:
        purchase = self._queue.next()
        if purchase:
            self.send(purchase, parts=11, pause=self._seconds / 10)


class Generator:
    """Starts the merchants, reports every second and carries out the lines of stdin."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._tally = Tally()
        self._queue = Queue(orders, self._tally)
        self._journal = Journal(Path(orders.folder))
        self._numbers = itertools.count()
        self._merchants = [self._merchant(Merchant) for _ in range(orders.threads)]

    def _merchant(self, kind: type[Merchant], **more: Any) -> Merchant:
        arguments = (self._orders, self._queue, self._tally, self._journal, next(self._numbers))
        merchant = kind(*arguments, **more)
        merchant.start()
        return merchant

    def listen(self) -> None:
        """Lines of stdin: `slow NUMBER SECONDS` starts slow clients; `stop SECONDS` ends the run:
        nothing new is bought, and unknown outcomes are given up after so many seconds."""
        for line in sys.stdin:
            word, *numbers = line.split()
            if word == "slow":
                for _ in range(int(numbers[0])):
                    self._merchants.append(self._merchant(SlowMerchant, seconds=float(numbers[1])))
            elif word == "stop":
                self._queue.patience = time.monotonic() + float(numbers[0])
                self._queue.stopped = True

    def report(self) -> None:
        tally = self._tally
        with tally.lock:
            seen = {
                "time": time.time(),
                "requests": dict(tally.requests),
                "milliseconds": dict(tally.milliseconds),
                "bought": dict(tally.bought),
                "outcomes": dict(tally.outcomes),
                "unresolved": self._queue.unresolved,
                "wrong": self._journal.wrongs,
            }
            tally.requests.clear()
            tally.milliseconds.clear()
        print(json.dumps(seen), flush=True)  # noqa: T201  read by the program that started this

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        while any(merchant.is_alive() for merchant in list(self._merchants)):
            time.sleep(1)
            self.report()
        for purchase in self._queue.abandon():
            self._journal.write(purchase, "unknown")
        self._journal.close()
        self.report()


if __name__ == "__main__":
    Generator(Orders(**json.loads(sys.stdin.readline()))).run()
