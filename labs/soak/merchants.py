"""Merchants who follow the documented rules, and the journal of what they were given.

They buy, and also send purchases that are refused, replays, conflicts with used keys, and purchases
that take seconds to arrive. They read top-ups again.
"""

import random
import threading
import time
import uuid
from array import array
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson

from labs.installation.buyers import Bought, Buyers
from labs.soak.shop import Shop
from tests.api.raw import Wire, head
from tests.concurrency.racing import outcome
from tests.live import LiveServer

SETTLE_SECONDS = 180.0  # until every outcome is known
REMEMBERED = 50  # finished purchases of a thread
REFUSED, REPLAYS, CONFLICTS, READS = 0.02, 0.02, 0.01, 0.02  # of all requests
REFUSALS = {"order_refused", "product_reference_not_found", "validation_failed"}
AGAIN = {"request_in_progress", "server_error", "lost"}


@dataclass
class Merchants(Buyers):
    """Buys what is `wanted`. For each purchase that succeeded at the first try, `times` has its end
    by the true time, and `took` its milliseconds."""

    shop: Shop = field(kw_only=True)
    wanted: Counter[str] = field(kw_only=True)  # `voucher` and `top_up`, still to be bought
    folder: Path = field(kw_only=True)
    reads_abandoned: bool = True
    pause: float = 0.0
    patience: float = SETTLE_SECONDS
    times: "array[float]" = field(default_factory=lambda: array("d"))
    took: "array[float]" = field(default_factory=lambda: array("d"))
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._given = (self.folder / "given.tsv").open("w", buffering=1 << 16)
        self._wrong = (self.folder / "wrong.txt").open("w", buffering=1)
        self._lock = threading.Lock()
        self._clients = {merchant.key: merchant.client.pk for merchant in self.shop.all}
        self._slow = 0, 0.0
        self._shown: dict[str, dict[str, Any]] = {}  # each order as last read

    @property
    def done(self) -> bool:
        return not +self.wanted

    def send_slowly(self, number: int, seconds: float) -> None:
        """Lets the next `number` purchases take so many seconds to arrive."""
        self._slow = number, seconds

    def close(self) -> None:
        self._given.close()
        self._wrong.close()

    def _buy_until(self, over: threading.Event) -> None:
        finished: deque[Bought] = deque(maxlen=REMEMBERED)
        while not over.is_set() and (kind := self._next_kind()):
            try:
                self._send_one(kind, finished)
            except AssertionError as wrong:
                self._wrong.write(f"{kind}: {wrong}".replace("\n", " ") + "\n")

    def _next_kind(self) -> str:
        """The kind to buy next, in proportion to what is left of each. A few are `refused`. Empty
        when nothing is left."""
        with self._lock:
            if self.done:
                return ""
            if random.random() < REFUSED:
                return "refused"
            (kind,) = random.choices(list(self.wanted), list(self.wanted.values()))
            self.wanted[kind] -= 1
            return kind

    def _send_one(self, kind: str, finished: deque[Bought]) -> None:
        if finished and random.random() < REPLAYS + CONFLICTS:
            self._repeat(random.choice(finished))
        if finished and random.random() < READS:
            self._look(random.choice(finished))
        api_key, body = random.choice(self.api_keys), self._body(kind)
        key = f"{self.shop.mark}-{uuid.uuid4().hex}"
        if kind == "refused":
            poor = {"product_id": self.shop.vouchers[0], "quantity": 1}
            body = random.choice([*self.shop.odd, poor])
            self._be_refused(self.shop.poor.key if body is poor else api_key, body, key)
            return
        with self._lock:
            (slow, seconds), self._slow = self._slow, (max(0, self._slow[0] - 1), self._slow[1])
        if slow:
            self._send_in_parts(seconds, api_key, body, key)
        try:
            one = self._buy(api_key, body, key)
        except AssertionError:
            self._note(kind, api_key, key, "unknown", {})
            raise
        finally:
            self.lost.pop(key, 0)
        self._note(kind, api_key, key, one.end, one.data)
        finished.append(one)
        assert len(one.data["codes"]) == (body["quantity"] if kind == "voucher" else 0), key
        if one.tries == 1 and not slow:
            assert one.end == "bought", f"{key}: {one.end}, and it was never sent before"
            with self._lock:
                self.times.append(time.time())
                self.took.append(1000 * one.seconds)

    def _body(self, kind: str) -> dict[str, Any]:
        if kind == "top_up":
            return {
                "delivery_type": "top_up",
                "system_product_id": random.choice(self.shop.topups),
                "player_id": f"{self.shop.mark}_{random.randrange(10**6):06d}",
            }
        quantity = random.choice((1, 1, 1, 1, 1, 1, 2, 3))
        return {"product_id": random.choice(self.shop.vouchers), "quantity": quantity}

    def _be_refused(self, api_key: str, body: dict[str, Any], key: str) -> None:
        until = time.monotonic() + self.patience
        while (found := self._try(api_key, key, body)) in AGAIN:
            assert time.monotonic() < until, f"no answer to {key}: {found}"
            time.sleep(0.1)
        self._note("refused", api_key, key, "refused" if found in REFUSALS else found, {})
        assert found in REFUSALS, f"refused {key}: {found}"

    def _try(self, api_key: str, key: str, body: dict[str, Any]) -> str:
        server = random.choice(self.servers)
        answer = self.send(server, api_key=api_key, key=key, body=body)
        found = "lost"
        if answer:
            found = "201" if answer.status_code == 201 else answer.json()["error"]["code"]
        self.seen[found] += 1
        return found

    def _send_in_parts(self, seconds: float, api_key: str, body: dict[str, Any], key: str) -> None:
        """Sends a purchase over so many seconds, and ignores the answer."""
        content = orjson.dumps(body)
        headers = {"Authorization": f"Bearer {api_key}", "Idempotency-Key": key}
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
        request = head("POST", "/api/v1/orders", headers) + content
        server = random.choice(self.servers)
        assert isinstance(server, LiveServer)
        with suppress(OSError, HTTPException), Wire(server) as wire:
            for at in range(0, len(request), 30):
                wire.send(request[at : at + 30])
                time.sleep(30 * seconds / len(request))
            wire.read("POST", "/api/v1/orders")

    def _repeat(self, one: Bought) -> None:
        """Sends a finished purchase once more, or another one with its key. Neither buys."""
        body = one.body
        if conflict := random.random() < CONFLICTS / (REPLAYS + CONFLICTS):
            changed = {"player_id": f"{body.get('player_id')}x"} if "player_id" in body else {}
            body = {**body, "delivery_type": body.get("delivery_type", "voucher"), **changed}
        server = random.choice(self.servers)
        answer = self.send(server, api_key=one.api_key, key=one.key, body=body)
        found = outcome(answer) if answer else "lost"
        self.seen[f"{'conflict' if conflict else 'repeated'}: {found}"] += 1
        if answer is None or found == "server_error":
            return
        if conflict:
            assert found == "idempotency_key_reused", f"conflict {one.key}: {found}"
        elif found == "replayed":
            was_read = one.end == "request_abandoned"
            assert was_read or answer.content == one.answer.content, f"another replay: {one.key}"
        elif found == "request_abandoned":
            assert answer.json()["error"]["reference"] == one.data["reference"], one.key
        else:  # the response was not stored: the key stays in progress until the window ends
            assert found == "request_in_progress", f"repeated {one.key}: {found}"

    def _look(self, one: Bought) -> None:
        """Reads a top-up order again. No response may contradict itself or undo an earlier one."""
        if one.body.get("delivery_type") == "top_up":
            answer = self.read(one.data["reference"], api_key=one.api_key)
            if answer is not None:
                order, reference = answer.json()["data"], one.data["reference"]
                before = self._shown.setdefault(reference, one.data)
                self._shown[reference] = order
                problem = inconsistency(order, before)
                assert not problem, f"order {reference}: {problem}"

    def _note(self, kind: str, api_key: str, key: str, end: str, data: dict[str, Any]) -> None:
        """Writes a line of the journal."""
        codes = ",".join(code["code"] for code in data.get("codes", ()))
        words = [kind, self._clients[api_key], key, end, data.get("reference", "")]
        words += [data.get("quantity", 1), data.get("total_price", ""), codes, time.time()]
        with self._lock:
            self.outcomes[end] += 1
            self._given.write("\t".join(map(str, words)) + "\n")


def inconsistency(order: dict[str, Any], before: dict[str, Any]) -> str:
    """How a top-up order contradicts itself or an earlier response; empty if it does not."""
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
