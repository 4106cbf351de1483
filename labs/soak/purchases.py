"""The purchases to make, the open ones, and the answers that merchants got."""

import heapq
import itertools
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from math import log2
from pathlib import Path
from typing import Any

import orjson

from labs.soak.wire import Reply

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0  # seconds before a retry
REFUSED = 0.02  # of all purchases
SAMPLED = 40  # answers of each kind whose shape is checked, and then one of SAMPLED_LATER
SAMPLED_LATER = 1000


@dataclass(frozen=True)
class Orders:
    """The goods to buy, and the servers. `wanted` is the number of purchases of each kind."""

    ports: list[int]
    clients: list[tuple[int, str]]  # client id and API key
    vouchers: list[int]  # product ids
    topups: list[int]
    odd: list[dict[str, Any]]  # bodies that are refused
    poor: tuple[int, str]  # a client without money
    mark: str  # begins every key and every player id
    wanted: dict[str, int]
    seed: int
    threads: int
    folder: str


@dataclass
class Purchase:
    """One purchase and what is known of it."""

    kind: str  # voucher, top_up or refused
    client: int
    bearer: str
    key: str
    body: bytes
    quantity: int
    tries: int = 0
    content: bytes = b""  # of the first 201
    reference: str = ""
    shown: dict[str, Any] = field(default_factory=dict)  # the order, as the merchant saw it last

    def request(self, body: bytes | None = None) -> bytes:
        return self.head(self.body if body is None else body) + (body or self.body)

    def head(self, body: bytes) -> bytes:
        return (
            f"POST /api/v1/orders HTTP/1.1\r\nHost: localhost\r\nAuthorization: {self.bearer}\r\n"
            f"Content-Type: application/json\r\nIdempotency-Key: {self.key}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode()


@dataclass
class Tally:
    """The counts of all merchants together since the last report, and since the beginning."""

    requests: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[int] = field(default_factory=Counter)
    bought: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, name: str, seconds: float | None = None) -> None:
        with self.lock:
            self.requests[name] += 1
            if seconds is not None:
                self.milliseconds[bucket(seconds)] += 1


class Queue:
    """The purchases that nobody works on: retries that wait for their time, and new ones."""

    def __init__(self, orders: Orders, tally: Tally) -> None:
        self._orders = orders
        self._tally = tally
        self._chance = random.Random(orders.seed)
        self._waiting: list[tuple[float, int, Purchase]] = []
        self._numbers = itertools.count()
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.stopped = False
        self.patience = float("inf")  # when to give up unknown outcomes, by the monotonic clock

    def next(self) -> Purchase | None:
        """A purchase to send now; None when there is none at the moment."""
        with self._lock:
            if self._waiting and self._waiting[0][0] <= time.monotonic():
                return heapq.heappop(self._waiting)[2]
            if not self.stopped and (kind := self._kind()):
                self._open[kind] += 1
                return self._new(kind)
            return None

    def later(self, purchase: Purchase) -> None:
        """Tries the purchase again after a pause that grows with the number of tries."""
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 1.5 ** min(purchase.tries, 20))
        with self._lock:
            due = time.monotonic() + pause * self._chance.uniform(0.5, 1)
            heapq.heappush(self._waiting, (due, next(self._numbers), purchase))

    def ended(self, kind: str) -> None:
        with self._lock:
            self._open[kind] -= 1

    @property
    def unresolved(self) -> int:
        with self._lock:
            return len(self._waiting)

    @property
    def done(self) -> bool:
        """Whether nothing more is to be bought, and every outcome is known."""
        with self._lock:
            return not +self._open and (self.stopped or self._kind() is None)

    def abandon(self) -> list[Purchase]:
        """Everything whose outcome is still unknown."""
        with self._lock:
            left, self._waiting = [purchase for _, _, purchase in self._waiting], []
            return left

    def _kind(self) -> str | None:
        """The next kind, so that both kinds end together; now and then one that is refused."""
        bought, wanted = self._tally.bought, self._orders.wanted
        left = {kind: wanted[kind] - bought[kind] - self._open[kind] for kind in wanted}
        voucher, topup = max(0, left["voucher"]), max(0, left["top_up"])
        if not voucher + topup:
            return None
        if self._chance.random() < REFUSED:
            return "refused"
        return "voucher" if self._chance.random() * (voucher + topup) < voucher else "top_up"

    def _new(self, kind: str) -> Purchase:
        orders, chance = self._orders, self._chance
        client, key = chance.choice(orders.clients)
        body: dict[str, Any]
        quantity = chance.choice((1, 1, 1, 1, 1, 1, 2, 3)) if kind == "voucher" else 1
        if kind == "voucher":
            body = {"product_id": chance.choice(orders.vouchers), "quantity": quantity}
        elif kind == "top_up":
            body = {
                "delivery_type": "top_up",
                "system_product_id": chance.choice(orders.topups),
                "player_id": f"{orders.mark}_{chance.randrange(10**6):06d}",
            }
        else:
            body = chance.choice([*orders.odd, {"product_id": orders.vouchers[0], "quantity": 1}])
            if body not in orders.odd:
                client, key = orders.poor
        name = f"{orders.mark}-{chance.getrandbits(96):024x}"
        return Purchase(kind, client, f"Bearer {key}", name, orjson.dumps(body), quantity)


class Journal:
    """The files of what the merchants were given: one line for each key."""

    def __init__(self, folder: Path) -> None:
        self._given = (folder / "given.tsv").open("w", buffering=1 << 16)
        self._samples = (folder / "samples.jsonl").open("wb")
        self._wrong = (folder / "wrong.txt").open("w", buffering=1)
        self._kinds: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.wrongs = 0

    def write(self, purchase: Purchase, outcome: str, data: dict[str, Any] | None = None) -> None:
        data = data or {}
        codes = ",".join(code["code"] for code in data.get("codes", ()))
        words = (
            *(purchase.kind, purchase.client, purchase.key, outcome, purchase.reference),
            *(purchase.quantity, data.get("total_price", ""), codes, time.time(), purchase.tries),
        )
        with self._lock:
            self._given.write("\t".join(map(str, words)) + "\n")

    def wrong(self, sentence: str) -> None:
        with self._lock:
            self.wrongs += 1
            self._wrong.write(sentence + "\n")

    def sample(self, kind: str, method: str, path: str, reply: Reply) -> None:
        """Keeps some answers of each kind. Their shapes are checked at the end of the run."""
        with self._lock:
            self._kinds[kind] += 1
            if self._kinds[kind] > SAMPLED and self._kinds[kind] % SAMPLED_LATER:
                return
            kept = [method, path, reply.status, reply.head.decode(), reply.content.decode()]
            self._samples.write(orjson.dumps(kept) + b"\n")

    def close(self) -> None:
        for file in (self._given, self._samples, self._wrong):
            file.close()


def inconsistency(order: dict[str, Any], before: dict[str, Any]) -> str:
    """The problem of a top-up order, by itself or after an earlier response; '' for none."""
    ended = order["fulfilment_status"] in ("completed", "failed")
    if order["status"] != (order["fulfilment_status"] if ended else "pending"):
        return "status does not follow fulfilment_status"
    if (order["failure_reason"] is None) == (order["status"] == "failed"):
        return "failure_reason without a failure, or a failure without it"
    if order["refunded"] and order["status"] != "failed":
        return "refunded but not failed"
    if order["codes"] or order["total_price"] != before["total_price"]:
        return "wrong codes or price"
    end = ("status", "failure_reason")
    if before["status"] != "pending" and any(before[name] != order[name] for name in end):
        return "an ended order changed"
    if before["refunded"] and not order["refunded"]:
        return "a refund was undone"
    return ""


def bucket(seconds: float) -> int:
    """The bucket of a time: eight for each doubling, so each is 9 % wide."""
    return int(8 * log2(max(seconds, 0.0001) * 1000) + 0.5)


def milliseconds(number: int) -> float:
    """The middle of a bucket."""
    return float(2 ** (number / 8))
