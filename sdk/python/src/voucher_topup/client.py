"""The client for programs with threads."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Optional, TypeVar
from urllib.parse import urlsplit

import httpx

from voucher_topup import core
from voucher_topup.flows import (
    POLL_SECONDS,
    REFUND_PATIENCE,
    Catalogue,
    Flow,
    Flows,
    Http,
    Item,
    Pause,
    Step,
    Store,
)
from voucher_topup.journal import Journal
from voucher_topup.models import Balance, Order, Outcome, Ping, Product, TopUpProduct
from voucher_topup.reconciling import Day, Reconciliation, reconcile
from voucher_topup.wire import NO_REPLY, Reply, Request, read_reply

T = TypeVar("T")
TIMEOUT = 35.0  # seconds: the service ends a request after 30
LONGEST_REPLY = 60.0  # seconds for a response that arrives slowly
LARGEST_REPLY = 32_000_000  # bytes


def voucher(
    quantity: int,
    *,
    product_id: Optional[int] = None,
    variation_id: Optional[int] = None,
    merchant_reference: Optional[str] = None,
) -> dict[str, Any]:
    """The content of a purchase of voucher codes. Name the product in one of the two ways."""
    if (product_id is None) == (merchant_reference is None):
        raise ValueError("Give product_id or merchant_reference, and not both.")
    named = {
        "product_id": product_id,
        "variation_id": variation_id,
        "merchant_reference": merchant_reference,
    }
    return {
        **{name: value for name, value in named.items() if value is not None},
        "quantity": quantity,
    }


def top_up(
    system_product_id: int, player_id: str, fields: Optional[Mapping[str, str]] = None
) -> dict[str, Any]:
    """The content of a purchase of a top-up."""
    body = {
        "delivery_type": "top_up",
        "system_product_id": system_product_id,
        "player_id": player_id,
    }
    return {**body, "fields": dict(fields)} if fields else body


class Session:
    """The settings with which both clients send requests."""

    def __init__(self, base_url: str, api_key: str) -> None:
        address = urlsplit(base_url)
        is_local = address.hostname in ("localhost", "127.0.0.1", "::1")
        if address.scheme != "https" and not is_local:
            raise ValueError("base_url must begin with https://, or anybody can read the API key.")
        if not re.fullmatch("[!-~]+", api_key):  # no header can carry it; never print it
            raise ValueError("api_key must be the key only, without spaces or line ends.")
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    def arguments(self, request: Request) -> dict[str, Any]:
        """Arguments of httpx."""
        headers = {"Authorization": f"Bearer {self._api_key}", "Accept": "application/json"}
        if request.idempotency_key is not None:
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = request.idempotency_key
        return {
            "method": request.method,
            "url": self._base_url + request.path,
            "params": dict(request.query) or None,
            "content": request.body,
            "headers": headers,
        }


class Client:
    """Buys through one API key. Threads may share it.

    The journal is where purchases are written first: `SQLiteJournal(path)`, `PostgresJournal(…)`,
    your own, or `MemoryJournal()`, which loses purchases in a crash.
    """

    def __init__(
        self, base_url: str, api_key: str, journal: Journal, *, rules: core.Rules = core.RULES
    ) -> None:
        self._session = Session(base_url, api_key)
        self._flows = Flows(journal, rules=rules)
        self._http = httpx.Client(timeout=TIMEOUT)

    def __repr__(self) -> str:
        return repr(self._session).replace("Session", "Client", 1)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def prepare(
        self, order_number: str, purchase: Mapping[str, Any], *, journal: Optional[Journal] = None
    ) -> None:
        """Writes a purchase to the journal and sends nothing. `complete` sends it.

        With `journal.within(connection)`, the purchase is written in the transaction of the shop.
        """
        self._run(self._flows.prepare(order_number, purchase, journal))

    def complete(self, order_number: str) -> Outcome:
        """Sends a purchase of the journal, or reads its outcome if it is settled."""
        return self._run(self._flows.complete(order_number))

    def buy(self, order_number: str, purchase: Mapping[str, Any]) -> Outcome:
        """Writes the purchase to the journal, and buys it once.

        With an order number that exists, it continues that purchase, or returns its outcome. Raises
        OrderNumberTaken if that purchase has other content.
        """
        return self._run(self._flows.buy(order_number, purchase))

    def retry(self, order_number: str) -> Outcome:
        """Sends a refused purchase again, with the same key and bytes, at the present price.

        A purchase that is older than 23 hours stays refused: buy it under another order number.
        """
        return self._run(self._flows.retry(order_number))

    def resume(self) -> list[Outcome]:
        """Settles all open purchases. Call it when the program starts, and every few minutes."""
        return self._run(self._flows.resume())

    def ping(self) -> Ping:
        """The name of the client and its limit, which the client keeps from now on."""
        return self._run(self._flows.ping())

    def balance(self) -> Balance:
        return self._run(self._flows.balance())

    def products(self, search: str = "", *, in_stock: bool = False) -> list[Product]:
        return self._run(self._flows.products(search, in_stock))

    def product(self, product_id: int) -> Product:
        return self._run(self._flows.product(product_id))

    def topup_products(self, search: str = "") -> list[TopUpProduct]:
        return self._run(self._flows.topup_products(search))

    def topup_product(self, product_id: int) -> TopUpProduct:
        return self._run(self._flows.topup_product(product_id))

    def order(self, reference: str) -> Order:
        return self._run(self._flows.order(reference))

    def since(self, reference: Optional[str]) -> list[Order]:
        """The orders after this reference, the oldest first; all orders if it is None."""
        return self._run(self._flows.since(reference))

    def sync(self, known: Iterable[int] = (), *, topups: bool = False) -> Catalogue:
        """A complete copy of the catalogue. `known` are the ids of your last copy."""
        return self._run(self._flows.sync(known, topups=topups))

    def watch(
        self,
        references: Iterable[str],
        *,
        every: float = POLL_SECONDS,
        refund_patience: float = REFUND_PATIENCE,
    ) -> Iterator[Order]:
        """Yields each top-up when it is delivered, or failed and refunded."""
        flow = self._flows.watch(references, every=every, refund_patience=refund_patience)
        result: Any = None
        while True:
            try:
                step = flow.send(result)
            except StopIteration:
                return
            if isinstance(step, Item):
                yield step.value
                result = None
            else:
                result = self._do(step)

    def reconcile(
        self, statement: str, *, since: Optional[Day] = None, until: Optional[Day] = None
    ) -> Reconciliation:
        """Compares the journal with a statement of the merchant site, as CSV or JSON.

        `since` and `until` are its first and its last day, in UTC, as a key for books gives them.
        They must be over. A purchase of these days needs a debit, even if the statement is empty. A
        purchase near midnight whose debit is not in the statement is in `purchases_at_the_edge`,
        and is no difference: the day before or after may have the debit. Each day, compare the
        last two days: then each purchase is checked.
        """
        return reconcile(statement, self._flows.journal, since=since, until=until)

    def _run(self, flow: Flow[T]) -> T:
        result: Any = None
        while True:
            try:
                step = flow.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            result = self._do(step)

    def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        if isinstance(step, Store):
            return step.call()
        assert isinstance(step, Http)  # noqa: S101
        return self._send(step.request)

    def _send(self, request: Request) -> Reply:
        ends = time.monotonic() + LONGEST_REPLY
        content = bytearray()
        try:
            with self._http.stream(**self._session.arguments(request)) as response:
                for part in response.iter_bytes():
                    content += part
                    if time.monotonic() > ends or len(content) > LARGEST_REPLY:
                        return NO_REPLY
                return read_reply(response.status_code, bytes(content))
        except (httpx.HTTPError, httpx.StreamError):
            return NO_REPLY
