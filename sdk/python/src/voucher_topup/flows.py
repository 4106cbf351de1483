"""The operations of the client, without input and output.

Each operation is a generator. It yields a step (`Http`, `Pause`, `Store` or `Item`) and receives
the result of the step. `client.py` and `aio.py` carry out the steps.
"""

import logging
import random
import re
import time
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Generic, Optional, TypeVar, Union
from urllib.parse import quote

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
from voucher_topup.reconciling import Day, debits_of_key
from voucher_topup.wire import (
    ErrorCode,
    Failure,
    Foreign,
    Refusal,
    Reply,
    Request,
    Success,
    describe,
    is_same_content,
    write_body,
)

logger = logging.getLogger("voucher_topup")

PER_PAGE = 100
COPIES = 3  # attempts to copy a catalogue that changes meanwhile
POLL_SECONDS = 30.0
REFUND_PATIENCE = 900.0
NO_TURN = "the limit of requests leaves no time"
TOO_OLD = Foreign(cause="it is older than 23 hours, so it is not sent again")
NOT_DEBITED = Failure(ErrorCode("not_debited"), "The statement has no debit of this purchase.")
KEY = re.compile(r"[!-+\-.-~]([ -+\-.-~]{0,126}[!-+\-.-~])?")
OUTAGE = (429, *range(500, 600))  # of the service, while a program watches


class ApiError(Exception):
    """The service refused a read. `error.code` says why; tell `request_id` to support."""

    def __init__(self, error: Failure, status: int = 0, request_id: Optional[str] = None) -> None:
        named = f" (X-Request-Id {request_id})" if request_id else ""
        super().__init__(f"{error.code.value}: {error.message}{named}")
        self.error = error
        self.status = status
        self.request_id = request_id


class Unavailable(Exception):
    """No response of the service came within the patience. Try again later.

    `status` (0: no response), `cause` and `request_id` are those of the last attempt.
    """

    def __init__(self, message: str, last: Optional[Foreign] = None) -> None:
        super().__init__(f"{message}: {describe(last)}" if last else message)
        self.status = last.status if last else 0
        self.cause = last.cause if last else ""
        self.request_id = last.request_id if last else None


class ReferenceNotFound(Exception):
    """The client has no order with this reference."""


@dataclass(frozen=True)
class Http:
    """A request; `seconds` is how long it may take, if the caller has a time of its own."""

    request: Request
    seconds: Optional[float] = None


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
class Catalogue(Generic[T]):
    """A complete copy. `gone` are known ids that the service has confirmed to be off sale."""

    products: tuple[T, ...]
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
        self,
        order_number: str,
        body: Mapping[str, object],
        journal: Optional[Journal] = None,
        key: Optional[str] = None,
    ) -> Flow[Entry]:
        """Writes the purchase. Returns the stored entry."""
        if key is not None and not KEY.fullmatch(key):
            raise ValueError("A key has 1 to 128 printable ASCII characters, without a comma.")
        entry = new_entry(order_number, key or str(uuid.uuid4()), write_body(body))
        stored: Entry = yield Store(lambda: (journal or self.journal).write(entry))
        if not is_same_content(stored.body, entry.body):
            raise OrderNumberTaken(order_number)
        return stored

    def buy(
        self,
        order_number: str,
        body: Mapping[str, object],
        key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Flow[Outcome]:
        entry = yield from self.prepare(order_number, body, key=key)
        return (yield from self.settle(entry, timeout))

    def complete(self, order_number: str, timeout: Optional[float] = None) -> Flow[Outcome]:
        return (yield from self.settle((yield from self._stored(order_number)), timeout))

    def retry(self, order_number: str, timeout: Optional[float] = None) -> Flow[Outcome]:
        oldest = time.time() - self._rules.key_lifetime
        yield Store(lambda: self.journal.reopen(order_number, oldest))
        return (yield from self.complete(order_number, timeout))

    def close(self, order_number: str, statement: str, since: Day, until: Day) -> Flow[Outcome]:
        """Settles an open purchase by what the statement says."""
        entry = yield from self._stored(order_number)
        if entry.state == "open":
            debits = debits_of_key(statement, entry, since=since, until=until)
            mine = yield from self._orders_of_this_client([reference for reference, _ in debits])
            bought = [debit for debit in debits if debit[0] in mine]
            if len(bought) > 1:
                raise ValueError(f"The statement has several debits of {order_number}: ask support")
            if bought:
                ((reference, total),) = bought
                yield Store(lambda: self.journal.settle_bought(order_number, reference, total))
            else:
                tried = replace(entry, sent_at=entry.sent_at or time.time())
                if entry.sent_at is None:  # only an attempt can be settled
                    yield from self._begin_attempt(entry, tried)
                yield from self._settle_refused(tried, NOT_DEBITED)
        return (yield from self.complete(order_number))

    def _orders_of_this_client(self, references: Sequence[str]) -> Flow[set[str]]:
        """The orders that it can read. Other clients of the account may use the same key."""
        mine = set()
        for reference in references:
            try:
                mine.add((yield from self.order(reference)).reference)
            except ApiError as problem:
                if problem.error.code != ErrorCode.ORDER_NOT_FOUND:
                    raise
        return mine

    def settle(self, entry: Entry, timeout: Optional[float] = None) -> Flow[Outcome]:
        """Settles the purchase, or leaves it open after `timeout` seconds."""
        ends = None if timeout is None else self._clock() + timeout
        return (yield from self._settle(entry, ends))

    def _settle(self, entry: Entry, ends: Optional[float]) -> Flow[Outcome]:
        """Carries out what the core decides, until the purchase is settled or left open."""
        number, rules = entry.order_number, self._rules_until(ends)
        if entry.state == "refused" and entry.error:
            return Refused(number, entry.error)
        if entry.state == "bought" and entry.reference:
            return (yield from self._read_bought(number, entry.reference, ends))
        state = self._first_state(entry)
        event: core.Event = core.Begin()
        last: Union[Refusal, Foreign] = TOO_OLD
        while True:
            state, action = core.decide(
                state, event, now=self._clock(), chance=self._chance(), rules=rules
            )
            if isinstance(action, core.SettleBought):
                return (yield from self._settle_bought(number, action.data))
            if isinstance(action, core.SettleRefused):
                stored = yield from self._settle_refused(entry, action.error)
                if stored.state == "open":  # another process has sent it meanwhile
                    return _unknown(number, action.error, None, last)
                return (yield from self._settle(stored, ends))
            if isinstance(action, core.LeaveOpen):
                logger.warning("purchase %s: the outcome is unknown: %s", number, describe(last))
                return _unknown(number, action.error, state.reference, last)
            if action.after:
                pause = action.after
                logger.info("purchase %s: again in %.1f s: %s", number, pause, describe(last))
                yield Pause(pause)
            if isinstance(action, core.Read):
                path = _order_path(action.reference)
                event = yield from self._exchange(Request("GET", path), ends)
            elif (yield from self._wait_for_turn(is_purchase=True, ends=ends)):
                before, entry = entry, replace(entry, sent_at=time.time())
                if not (yield from self._begin_attempt(before, entry)):
                    # Another process has sent or settled it.
                    return (yield from self._settle((yield from self._stored(number)), ends))
                event = yield from self._send(
                    Request("POST", "/orders", body=entry.body, idempotency_key=entry.key), ends
                )
            else:
                return Unknown(number, cause=NO_TURN)
            last = event if isinstance(event, (Refusal, Foreign)) else last

    def _settle_bought(self, number: str, data: Mapping[str, Any]) -> Flow[Outcome]:
        order = order_from_json(data)
        total = str(order.total_price)
        yield Store(lambda: self.journal.settle_bought(number, order.reference, total))
        logger.info("purchase %s: bought as %s", number, order.reference)
        return Bought(number, order)

    def _settle_refused(self, entry: Entry, error: Failure) -> Flow[Entry]:
        """Returns the stored entry: another process may have sent it meanwhile, or bought."""
        number, sent_at = entry.order_number, entry.sent_at or 0.0
        yield Store(lambda: self.journal.settle_refused(number, sent_at, error))
        stored = yield from self._stored(number)
        logger.info("purchase %s: %s", number, stored.state)
        return stored

    def _begin_attempt(self, before: Entry, entry: Entry) -> Flow[bool]:
        """Returns False if another process has sent or settled it."""
        number, sent_at = entry.order_number, entry.sent_at or 0.0
        is_ours: bool = yield Store(
            lambda: self.journal.begin_attempt(number, before.sent_at, sent_at)
        )
        return is_ours

    def _stored(self, number: str) -> Flow[Entry]:
        entry: Optional[Entry] = yield Store(lambda: self.journal.find(number))
        if entry is None:
            raise NotInJournal(number)
        return entry

    def _read_bought(self, number: str, reference: str, ends: Optional[float]) -> Flow[Outcome]:
        try:
            data = yield from self._read(_order_path(reference), ends=ends)
            return Bought(number, order_from_json(data))
        except ApiError as problem:
            return _unknown(
                number,
                problem.error,
                reference,
                Refusal(problem.status, problem.error, problem.request_id),
            )
        except Unavailable as problem:
            last = Foreign(problem.status, problem.cause, problem.request_id)
            return _unknown(number, None, reference, last)

    def _rules_until(self, ends: Optional[float]) -> core.Rules:
        if ends is None:
            return self._rules
        patience = min(self._rules.patience, max(0.0, ends - self._clock()))
        return replace(self._rules, patience=patience, progress_patience=0.0)

    def _first_state(self, entry: Entry) -> core.State:
        """The state after the attempts of earlier calls, of which none has left its outcome."""
        rules, now, today = self._rules, self._clock(), time.time()
        key_ends = now + rules.key_lifetime - (today - entry.opened_at)
        if entry.sent_at is None:
            return core.State(started=now, key_ends=key_ends)
        age = max(0.0, today - entry.sent_at)
        late_until = now + rules.attempt_lifetime - age
        return core.State(started=now, key_ends=key_ends, doubt=True, late_until=late_until)

    def _exchange(self, request: Request, ends: Optional[float] = None) -> Flow[Reply]:
        """One request and its reply, when the pace allows it."""
        if not (yield from self._wait_for_turn(is_purchase=request.is_purchase, ends=ends)):
            return Foreign(cause=NO_TURN)
        return (yield from self._send(request, ends))

    def _wait_for_turn(self, *, is_purchase: bool, ends: Optional[float] = None) -> Flow[bool]:
        """Returns False if the turn would come after the end."""
        token = object()
        try:
            while wait := self.pace.ask(token, is_purchase=is_purchase, now=self._clock()):
                if ends is not None and self._clock() + wait > ends:
                    return False
                yield Pause(wait)
            return True
        finally:
            self.pace.forget(token)

    def _send(self, request: Request, ends: Optional[float] = None) -> Flow[Reply]:
        seconds = None if ends is None else max(0.05, ends - self._clock())
        reply: Reply = yield Http(request, seconds)
        if isinstance(reply, Refusal) and reply.error.code == ErrorCode.RATE_LIMITED:
            self.pace.block(self._clock() + max(1, reply.error.retry_after_seconds or 1))
        return reply

    # Reads

    def _read(
        self,
        path: str,
        query: Optional[Mapping[str, str]] = None,
        ends: Optional[float] = None,
    ) -> Flow[Mapping[str, Any]]:
        """The data of a read. Raises ApiError or Unavailable."""
        started, tries, rules = self._clock(), 0, self._rules_until(ends)
        while True:
            reply = yield from self._exchange(Request("GET", path, query or {}), ends)
            next_step = core.decide_read(
                tries, reply, waited=self._clock() - started, chance=self._chance(), rules=rules
            )
            if isinstance(next_step, Success):
                return next_step.data
            if isinstance(next_step, Refusal):
                raise ApiError(next_step.error, next_step.status, next_step.request_id)
            if not isinstance(next_step, float):
                raise Unavailable(f"GET {path}", next_step)
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
        return order_from_json((yield from self._read(_order_path(reference))))

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

    def sync(
        self, known: Iterable[int], *, topups: bool
    ) -> Flow[Catalogue[Union[Product, TopUpProduct]]]:
        """A copy of the catalogue, and which of the known ids are off sale."""
        products: Sequence[Union[Product, TopUpProduct]]
        products = yield from (self.topup_products() if topups else self.products())
        missing = set(known) - {product.id for product in products}
        gone: list[int] = []
        back: list[Union[Product, TopUpProduct]] = []
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

        It also yields a failed order that is not refunded within `refund_patience` seconds. An
        outage only delays it. Raises ReferenceNotFound at the end if the client has no such order.
        """
        waiting = set(references)
        failed: dict[str, float] = {}
        unknown: set[str] = set()
        while waiting:
            try:
                if self.pace.limit is None:
                    yield from self.ping()
                orders = yield from self._current(waiting, unknown)
            except (Unavailable, ApiError) as problem:
                if isinstance(problem, ApiError) and problem.status not in OUTAGE:
                    raise
                logger.warning("watch: %s", problem)
                orders = []
            waiting -= unknown
            for order in orders:
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
        if unknown:
            raise ReferenceNotFound(", ".join(sorted(unknown)))

    def _current(self, waiting: set[str], unknown: set[str]) -> Flow[list[Order]]:
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
            try:
                found[reference] = yield from self.order(reference)
            except (ApiError, ValueError) as problem:
                code = problem.error.code if isinstance(problem, ApiError) else None
                if code not in (None, ErrorCode.ORDER_NOT_FOUND):
                    raise
                unknown.add(reference)
        return list(found.values())


def _order_path(reference: str) -> str:
    if reference in ("", ".", ".."):
        raise ValueError(f"Not a reference: {reference!r}")
    return f"/orders/{quote(reference, safe='')}"


def _unknown(
    number: str,
    error: Optional[Failure],
    reference: Optional[str],
    last: Union[Refusal, Foreign],
) -> Unknown:
    cause = last.error.code.value if isinstance(last, Refusal) else last.cause
    return Unknown(number, error, reference, last.status, cause, last.request_id)
