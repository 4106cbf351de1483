"""The operations of the client, without input and output.

Each operation is a generator. It yields a step (`Http`, `Pause`, `Store` or `Item`) and receives
the result of the step. `client.py` and `aio.py` carry out the steps.
"""

import logging
import random
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, TypeVar, Union

from voucher_topup import core
from voucher_topup.journal import Entry, Journal, NotInJournal, OrderNumberTaken, new_entry
from voucher_topup.models import (
    Balance,
    Bought,
    Order,
    OrderStatus,
    Outcome,
    Ping,
    Product,
    Refused,
    TopUpOrder,
    TopUpProduct,
    Unknown,
    balance_from_json,
    order_from_json,
    ping_from_json,
    product_from_json,
    topup_product_from_json,
)
from voucher_topup.pace import Pace
from voucher_topup.wire import (
    ErrorCode,
    Failure,
    Refusal,
    Reply,
    Request,
    Success,
    write_body,
)

logger = logging.getLogger("voucher_topup")

PER_PAGE = 100
COPIES = 3  # attempts to copy a catalogue that changes meanwhile
POLL_SECONDS = 30.0
REFUND_PATIENCE = 900.0


class ApiError(Exception):
    """The service refused a read. `error.code` says why."""

    def __init__(self, error: Failure) -> None:
        super().__init__(f"{error.code.value}: {error.message}")
        self.error = error


class Unavailable(Exception):
    """No response of the service came within the patience. Try again later."""


class ReferenceNotFound(Exception):
    """The client has no order with this reference."""


@dataclass(frozen=True)
class Http:
    request: Request


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Store:
    """A call of the journal."""

    call: Callable[[], Any]


@dataclass(frozen=True)
class Item:
    """One result of an operation with many."""

    value: Any


T = TypeVar("T")
Step = Union[Http, Pause, Store, Item]
Flow = Generator[Step, Any, T]


@dataclass(frozen=True)
class Catalogue:
    """A complete copy. `gone` are known ids that the service has confirmed to be off sale."""

    products: tuple[Any, ...]
    gone: tuple[int, ...]


class Flows:
    """The operations of one API client."""

    def __init__(
        self,
        journal: Journal,
        *,
        rules: core.Rules = core.RULES,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.journal = journal
        self.pace = Pace()
        self._rules = rules
        self._clock = clock
        self._chance = chance

    # Purchases

    def prepare(
        self, order_number: str, body: Mapping[str, Any], journal: Optional[Journal] = None
    ) -> Flow[Entry]:
        """Writes the purchase. Returns the stored entry."""
        entry = new_entry(order_number, str(uuid.uuid4()), write_body(body))
        stored: Entry = yield Store(lambda: (journal or self.journal).write(entry))
        if stored.body != entry.body:
            raise OrderNumberTaken(order_number)
        return stored

    def buy(self, order_number: str, body: Mapping[str, Any]) -> Flow[Outcome]:
        entry = yield from self.prepare(order_number, body)
        return (yield from self._settle(entry))

    def complete(self, order_number: str) -> Flow[Outcome]:
        entry: Optional[Entry] = yield Store(lambda: self.journal.find(order_number))
        if entry is None:
            raise NotInJournal(order_number)
        return (yield from self._settle(entry))

    def retry(self, order_number: str) -> Flow[Outcome]:
        oldest = time.time() - self._rules.key_lifetime
        yield Store(lambda: self.journal.reopen(order_number, oldest))
        return (yield from self.complete(order_number))

    def resume(self) -> Flow[list[Outcome]]:
        entries: Sequence[Entry] = yield Store(self.journal.open_entries)
        outcomes = []
        for entry in entries:
            outcomes.append((yield from self._settle(entry)))
        return outcomes

    def _settle(self, entry: Entry) -> Flow[Outcome]:
        """Carries out what the core decides, until the purchase is settled or left open."""
        number = entry.order_number
        if entry.state == "refused" and entry.error:
            return Refused(number, entry.error)
        if entry.state == "bought" and entry.reference:
            return (yield from self._read_bought(number, entry.reference))
        state = self._first_state(entry)
        sent_at = entry.sent_at
        event: core.Event = core.Begin()
        while True:
            state, action = core.decide(
                state, event, now=self._clock(), chance=self._chance(), rules=self._rules
            )
            if isinstance(action, core.SettleBought):
                order = order_from_json(action.data)
                total = str(order.total_price)
                yield Store(
                    lambda: self.journal.settle_bought(number, order.reference, total)  # noqa: B023
                )
                logger.info("purchase %s: bought as %s", number, order.reference)
                return Bought(number, order)
            if isinstance(action, core.SettleRefused):
                refusal = action.error
                yield Store(lambda: self.journal.settle_refused(number, sent_at or 0.0, refusal))  # noqa: B023
                # Another process may have sent it meanwhile, or bought.
                stored: Optional[Entry] = yield Store(lambda: self.journal.find(number))
                if stored is None or stored.state == "open":
                    return Unknown(number, refusal)
                logger.info("purchase %s: %s", number, stored.state)
                return (yield from self._settle(stored))
            if isinstance(action, core.LeaveOpen):
                logger.warning("purchase %s: the outcome is unknown", number)
                return Unknown(number, action.error, state.reference)
            if action.after:
                logger.info("purchase %s: again in %.1f s", number, action.after)
                yield Pause(action.after)
            if isinstance(action, core.Read):
                event = yield from self._exchange(Request("GET", f"/orders/{action.reference}"))
            else:
                yield from self._wait_for_turn(is_purchase=True)
                before, sent_at = sent_at, time.time()
                is_ours: bool = yield Store(
                    lambda: self.journal.begin_attempt(number, before, sent_at)  # noqa: B023
                )
                if not is_ours:  # another process has sent or settled it
                    return (yield from self.complete(number))
                event = yield from self._send(
                    Request("POST", "/orders", body=entry.body, idempotency_key=entry.key)
                )

    def _read_bought(self, number: str, reference: str) -> Flow[Outcome]:
        try:
            return Bought(number, (yield from self.order(reference)))
        except ApiError as problem:
            return Unknown(number, problem.error, reference)
        except Unavailable:
            return Unknown(number, None, reference)

    def _first_state(self, entry: Entry) -> core.State:
        """The state after the attempts of earlier calls, of which none has left its outcome."""
        rules, now, today = self._rules, self._clock(), time.time()
        key_ends = now + rules.key_lifetime - (today - entry.opened_at)
        if entry.sent_at is None:
            return core.State(started=now, key_ends=key_ends)
        age = max(0.0, today - entry.sent_at)
        late_until = now + rules.attempt_lifetime - age
        return core.State(started=now, key_ends=key_ends, doubt=True, late_until=late_until)

    def _exchange(self, request: Request) -> Flow[Reply]:
        """One request and its reply, when the pace allows it."""
        yield from self._wait_for_turn(is_purchase=request.is_purchase)
        return (yield from self._send(request))

    def _wait_for_turn(self, *, is_purchase: bool) -> Flow[None]:
        token = object()
        try:
            while wait := self.pace.ask(token, is_purchase=is_purchase, now=self._clock()):
                yield Pause(wait)
        finally:
            self.pace.forget(token)

    def _send(self, request: Request) -> Flow[Reply]:
        reply: Reply = yield Http(request)
        if isinstance(reply, Refusal) and reply.error.code == ErrorCode.RATE_LIMITED:
            self.pace.block(self._clock() + max(1, reply.error.retry_after_seconds or 1))
        return reply

    # Reads

    def _read(
        self, path: str, query: Optional[Mapping[str, str]] = None
    ) -> Flow[Mapping[str, Any]]:
        """The data of a read. Raises ApiError or Unavailable."""
        started, tries = self._clock(), 0
        while True:
            reply = yield from self._exchange(Request("GET", path, query or {}))
            next_step = core.decide_read(
                tries,
                reply,
                waited=self._clock() - started,
                chance=self._chance(),
                rules=self._rules,
            )
            if isinstance(next_step, Success):
                return next_step.data
            if isinstance(next_step, Refusal):
                raise ApiError(next_step.error)
            if not isinstance(next_step, float):
                raise Unavailable(f"GET {path}: HTTP status {next_step.status or 'unknown'}")
            yield Pause(next_step)
            tries += 1

    def ping(self) -> Flow[Ping]:
        ping = ping_from_json((yield from self._read("/ping")))
        self.pace.limit = ping.rate_limit_per_minute
        return ping

    def balance(self) -> Flow[Balance]:
        return balance_from_json((yield from self._read("/balance")))

    def product(self, product_id: int) -> Flow[Product]:
        return product_from_json((yield from self._read(f"/products/{product_id}")))

    def topup_product(self, product_id: int) -> Flow[TopUpProduct]:
        return topup_product_from_json((yield from self._read(f"/topup-products/{product_id}")))

    def order(self, reference: str) -> Flow[Order]:
        return order_from_json((yield from self._read(f"/orders/{reference}")))

    def _pages(self, path: str, query: Mapping[str, str]) -> Flow[list[Mapping[str, Any]]]:
        """Everything of a list, each row once, and only if the list did not change meanwhile."""
        for _ in range(COPIES):
            rows: dict[Any, Mapping[str, Any]] = {}
            totals = set()
            page, last = 1, 1
            while page <= last:
                data = yield from self._page(path, page, query)
                last, total = data["pagination"]["last_page"], data["pagination"]["total"]
                totals.add(total)
                rows.update((row["id"], row) for row in data["items"])
                page += 1
            if totals == {len(rows)}:
                return list(rows.values())
        raise Unavailable(f"{path} changed while it was copied, {COPIES} times")

    def _page(
        self, path: str, page: int, query: Optional[Mapping[str, str]] = None
    ) -> Flow[Mapping[str, Any]]:
        pages = {"per_page": str(PER_PAGE), "page": str(page)}
        return (yield from self._read(path, {**(query or {}), **pages}))

    def products(self, search: str = "", in_stock: bool = False) -> Flow[list[Product]]:
        query = {
            **({"search": search} if search else {}),
            **({"in_stock": "1"} if in_stock else {}),
        }
        return [product_from_json(row) for row in (yield from self._pages("/products", query))]

    def topup_products(self, search: str = "") -> Flow[list[TopUpProduct]]:
        query = {"search": search} if search else {}
        rows = yield from self._pages("/topup-products", query)
        return [topup_product_from_json(row) for row in rows]

    def sync(self, known: Iterable[int], *, topups: bool) -> Flow[Catalogue]:
        """A copy of the catalogue, and which of the known ids are off sale."""
        products: Sequence[Any] = yield from (self.topup_products() if topups else self.products())
        missing = set(known) - {product.id for product in products}
        gone: list[int] = []
        back: list[Any] = []
        for product_id in sorted(missing):
            try:
                if topups:
                    back.append((yield from self.topup_product(product_id)))
                else:
                    back.append((yield from self.product(product_id)))
            except ApiError as problem:
                if problem.error.code != ErrorCode.PRODUCT_NOT_FOUND:
                    raise
                gone.append(product_id)
        return Catalogue((*products, *back), tuple(gone))

    def since(self, reference: Optional[str]) -> Flow[list[Order]]:
        """The orders that are newer than this reference, the oldest first."""
        found: dict[str, Order] = {}
        page, last = 1, 1
        while page <= last:
            data = yield from self._page("/orders", page)
            last = data["pagination"]["last_page"]
            for row in data["items"]:
                if row["reference"] == reference:
                    return list(found.values())[::-1]
                # New orders move rows to the next page, where they appear again.
                found.setdefault(row["reference"], order_from_json(row))
            page += 1
        if reference is not None:
            raise ReferenceNotFound(reference)
        return list(found.values())[::-1]

    def watch(
        self,
        references: Iterable[str],
        *,
        every: float = POLL_SECONDS,
        refund_patience: float = REFUND_PATIENCE,
    ) -> Flow[None]:
        """Yields each order when it is completed, or failed and refunded.

        It also yields a failed order that is not refunded within `refund_patience` seconds.
        """
        waiting = set(references)
        failed: dict[str, float] = {}
        if self.pace.limit is None:
            yield from self.ping()
        while waiting:
            for order in (yield from self._current(waiting)):
                now = self._clock()
                if order.status == OrderStatus.FAILED and isinstance(order, TopUpOrder):
                    since = failed.setdefault(order.reference, now)
                    is_final = order.refunded or now - since >= refund_patience
                else:
                    is_final = order.status == OrderStatus.COMPLETED
                if is_final:
                    waiting.discard(order.reference)
                    yield Item(order)
            if waiting:
                yield Pause(every * (1 + self._chance() / 10))

    def _current(self, waiting: set[str]) -> Flow[list[Order]]:
        """The orders of these references: many from pages of the list, the rest one by one."""
        found: dict[str, Order] = {}
        page, last, helps = 1, 1, len(waiting) > 1
        while helps and page <= last and len(found) < len(waiting):
            data = yield from self._page("/orders", page)
            last = data["pagination"]["last_page"]
            rows = [row for row in data["items"] if row["reference"] in waiting]
            found.update((row["reference"], order_from_json(row)) for row in rows)
            helps = len(rows) > 1
            page += 1
        for reference in sorted(waiting - found.keys()):
            found[reference] = yield from self.order(reference)
        return list(found.values())
