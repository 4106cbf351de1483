"""Judges answers: by the OpenAPI document, by what was expected, and by what changed."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import orjson
from django.db import connection

from labs.odd_requests.making import BASE, Odd
from labs.odd_requests.sending import Reply
from labs.odd_requests.world import Bought, World
from tests.answers import WrongAnswer, check_answer, read_json

CACHED = 20_000
CHECKED_AGAIN = 50  # one of so many answers of a known form
DIGITS = re.compile(r"\d+")
# Sums and counts of everything that a purchase moves.
FINGERPRINT = """
    SELECT (SELECT count(*) FROM orders_order),
           (SELECT coalesce(sum(total_price), 0) FROM orders_order),
           (SELECT coalesce(sum(balance), 0) FROM wallets_wallet),
           (SELECT count(*) FROM wallets_ledgerentry),
           (SELECT coalesce(sum(available_stock), 0) FROM catalogue_shelf),
           (SELECT coalesce(sum(available_stock), 0) FROM topups_topupproduct),
           (SELECT count(*) FROM topups_fulfilment),
           (SELECT count(*) FROM topups_fulfilmentevent),
           (SELECT count(*) FROM idempotency_idempotencyrecord),
           (SELECT coalesce(sum(orders), 0) FROM orders_clientcounter)
"""
NAMES = (
    *("orders", "their total", "balances", "ledger entries", "codes in stock", "packages in stock"),
    *("fulfilments", "their events", "idempotency records", "counted orders"),
)


@dataclass(frozen=True)
class Books:
    """The fingerprint of the money and stock."""

    values: tuple[Decimal, ...]

    @classmethod
    def read(cls) -> "Books":
        with connection.cursor() as cursor:
            cursor.execute(FINGERPRINT)
            row = cursor.fetchone()
        assert row
        return cls(tuple(map(Decimal, row)))


@dataclass
class Judge:
    """Judges one answer after the other, and the books after each batch."""

    world: World
    counted: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    _seen: set[tuple[object, ...]] = field(default_factory=set)
    _answers: int = 0
    _batch: list[Odd] = field(default_factory=list)
    _moved: list[Decimal] = field(default_factory=lambda: [Decimal(0)] * len(NAMES))
    _books: Books | None = None

    def answer(self, odd: Odd, reply: Reply) -> None:
        outcome = reply.outcome
        self.counted[outcome] += 1
        self._batch.append(odd)
        if reply.status >= 500:
            self._problem(odd, f"{reply.status}: {reply.content[:300]!r}")
        elif outcome not in odd.expected and not (odd.method == "HEAD" and not reply.content):
            self._problem(odd, f"{outcome}, expected one of {sorted(odd.expected)}")
        self._check_shape(odd, reply)
        if reply.status == 201:
            self._bought(odd, reply)

    def books(self) -> None:
        """Compares the books with the purchases since the last call. Nothing else may move them."""
        books = Books.read()
        if self._books is not None:
            for name, before, after, moved in zip(
                NAMES, self._books.values, books.values, self._moved, strict=True
            ):
                if after - before != moved:
                    numbers = f"{self._batch[0].number} to {self._batch[-1].number}"
                    self.problems.append(
                        f"requests {numbers}: {name} moved by {after - before}, not by {moved}"
                    )
        self._books = books
        self._moved = [Decimal(0)] * len(NAMES)
        self._batch.clear()

    def _check_shape(self, odd: Odd, reply: Reply) -> None:
        """Checks every new form of an answer against the document, and some of the known forms."""
        path = "/orders/*" if odd.path.startswith(f"{BASE}/orders/") else DIGITS.sub("0", odd.path)
        replay = reply.headers.get("Idempotent-Replay")
        seen = (odd.method, path, reply.status, replay, form(reply))
        self._answers += 1
        if seen in self._seen and self._answers % CHECKED_AGAIN:
            return
        try:
            check_answer(
                odd.method,
                unquote(odd.path, errors="replace"),
                status=reply.status,
                headers=reply.headers,
                body=reply.content,
            )
        except WrongAnswer as wrong:
            self._problem(odd, str(wrong))
            return
        if len(self._seen) > CACHED:
            self._seen.clear()
        self._seen.add(seen)

    def _bought(self, odd: Odd, reply: Reply) -> None:
        replayed = "Idempotent-Replay" in reply.headers
        if odd.replays:
            if not (odd.of and replayed and reply.content == odd.of.content):
                self._problem(odd, "not a replay of the same bytes")
            return
        headers = dict(odd.headers)
        used = (headers["Authorization"], headers["Idempotency-Key"])
        before = next((one for one in self.world.bought if (one.bearer, one.key) == used), None)
        if replayed:  # by chance, a key that is in use can come with the content of its purchase
            if not (before and _same(odd, before) and reply.content == before.content):
                self._problem(odd, "a replay of what was not bought before")
            return
        if before:
            self._problem(odd, "bought again with a used key")
        self.counted["bought"] += 1
        data = read_json(reply.content)["data"]
        price, codes = Decimal(data["total_price"]), len(data["codes"])
        topup = "delivery_type" in data
        package = topup and data["system_product_id"] in self.world.counted
        moved: list[Decimal | int]
        moved = [1, price, -price, 1, -codes, -package, topup, topup, 1, 1]
        self._moved = [before + Decimal(by) for before, by in zip(self._moved, moved, strict=True)]
        self.world.bought.append(
            Bought(
                bearer=headers["Authorization"],
                key=headers["Idempotency-Key"],
                query=odd.query,
                body=odd.body,
                content=reply.content,
                reference=data["reference"],
            )
        )

    def _problem(self, odd: Odd, what: str) -> None:
        shown = f"{odd.method} {odd.path[:200]}?{odd.query[:100]} {odd.body[:200]!r}"
        headers = {name: value[:60] for name, value in odd.headers if name != "Authorization"}
        self.problems.append(f"request {odd.number}: {what}: {shown} {headers}")


def _same(odd: Odd, bought: Bought) -> bool:
    """Whether the query and the content are those of this purchase."""
    return odd.query == bought.query and _content(odd.body) == _content(bought.body)


def _content(body: bytes) -> str:
    """The value of a body: 1, 1.0 and true are different."""
    return json.dumps(json.loads(body), sort_keys=True)


def form(reply: Reply) -> object:
    """The names and types of an answer, with its error code and reason, without other values."""
    if b'"error"' in reply.content[:40] or not reply.content.startswith(b'{"success":true'):
        return reply.content if len(reply.content) < 2000 else reply.status
    return _form(orjson.loads(reply.content))


def _form(value: Any) -> object:
    if isinstance(value, dict):
        return tuple((name, _form(each)) for name, each in value.items())
    if isinstance(value, list):
        return frozenset(map(_form, value))
    return type(value)
