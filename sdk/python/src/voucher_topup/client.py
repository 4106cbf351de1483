"""The client for programs with threads."""

import re
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Optional, TypeVar, Union
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
from voucher_topup.wire import Foreign, Reply, read_reply

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
) -> dict[str, object]:
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
) -> dict[str, object]:
    """The content of a purchase of a top-up."""
    body: dict[str, object] = {
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
        if not address.path.rstrip("/").endswith("/api/v1"):
            raise ValueError("base_url must end with /api/v1: it is the address with the version.")
        if not re.fullmatch("[!-~]+", api_key):  # no header can carry it; never print it
            raise ValueError("api_key must be the key only, without spaces or line ends.")
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        self._user_agent = _user_agent()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base_url!r})"

    def arguments(self, step: Http) -> dict[str, Any]:
        """Arguments of httpx."""
        request, seconds = step.request, step.seconds
        headers = {
            "Authorization": f"Bearer {self._api_key}",
            "Accept": "application/json",
            "User-Agent": self._user_agent,
        }
        if request.idempotency_key is not None:
            headers["Content-Type"] = "application/json"
            headers["Idempotency-Key"] = request.idempotency_key
        return {
            "method": request.method,
            "url": self._base_url + request.path,
            "params": dict(request.query) or None,
            "content": request.body,
            "headers": headers,
            "timeout": TIMEOUT if seconds is None else min(TIMEOUT, seconds),
            "follow_redirects": False,
        }


def _user_agent() -> str:
    try:
        return f"voucher-topup-python/{version('voucher-topup')}"
    except PackageNotFoundError:  # it runs from its source
        return "voucher-topup-python"


def no_reply(problem: Exception) -> Foreign:
    """The error to report when no complete response came."""
    causes: list[Optional[BaseException]] = [problem]
    while causes[-1] is not None:
        causes.append(causes[-1].__cause__ or causes[-1].__context__)
    is_unreachable = isinstance(problem, httpx.ConnectError) and any(map(_is_permanent, causes))
    return Foreign(0, f"{type(problem).__name__}: {problem}", is_unreachable=is_unreachable)


def _is_permanent(problem: Optional[BaseException]) -> bool:
    """Whether the host has no address, its certificate is wrong, or it does not speak TLS."""
    if isinstance(problem, ssl.SSLError):
        is_wrong = isinstance(problem, ssl.SSLCertVerificationError)
        return is_wrong or problem.reason == "WRONG_VERSION_NUMBER"
    return isinstance(problem, socket.gaierror) and problem.errno == socket.EAI_NONAME


class Client:
    """Buys through one API key. Threads may share it.

    The journal is where purchases are written first: `SQLiteJournal(path)`, `PostgresJournal(…)`,
    your own, or `MemoryJournal()`, which loses purchases in a crash. `http` is an HTTP client of
    your own, such as one with a proxy; you close it.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        journal: Journal,
        *,
        rules: core.Rules = core.RULES,
        http: Optional[httpx.Client] = None,
    ) -> None:
        self._session = Session(base_url, api_key)
        self._flows = Flows(journal, rules=rules)
        self._is_ours = http is None
        self._http = http or httpx.Client()

    def __repr__(self) -> str:
        return repr(self._session).replace("Session", "Client", 1)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._is_ours:
            self._http.close()

    def prepare(
        self,
        order_number: str,
        purchase: Mapping[str, object],
        *,
        journal: Optional[Journal] = None,
        key: Optional[str] = None,
    ) -> None:
        """Writes a purchase to the journal and sends nothing. `complete` sends it.

        With `journal.within(connection)`, the purchase is written in the transaction of the shop.
        """
        self._run(self._flows.prepare(order_number, purchase, journal, key))

    def complete(self, order_number: str, *, timeout: Optional[float] = None) -> Outcome:
        """Sends a purchase of the journal, or reads its outcome if it is settled."""
        return self._run(self._flows.complete(order_number, timeout))

    def buy(
        self,
        order_number: str,
        purchase: Mapping[str, object],
        *,
        key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Outcome:
        """Writes the purchase to the journal, and buys it once.

        With an order number that exists, it continues that purchase, or returns its outcome. Raises
        OrderNumberTaken if that purchase has other content. `key` is the idempotency key, such as
        the order number; without one it is random. After `timeout` seconds, the outcome is
        `Unknown` and the purchase stays open; without it, that takes up to 95 seconds, or 390 after
        request_in_progress.
        """
        return self._run(self._flows.buy(order_number, purchase, key, timeout))

    def retry(self, order_number: str, *, timeout: Optional[float] = None) -> Outcome:
        """Sends a refused purchase again, with the same key and bytes, at the present price.

        A purchase that is older than 23 hours stays refused: buy it under another order number.
        """
        return self._run(self._flows.retry(order_number, timeout))

    def resume(self, *, timeout: Optional[float] = None, at_once: int = 4) -> list[Outcome]:
        """Settles all open purchases. Call it when the program starts, and every few minutes.

        `timeout` is for each purchase; `at_once` purchases are sent at the same time.
        """
        entries = self._flows.journal.open_entries()
        with ThreadPoolExecutor(at_once) as pool:
            settled = pool.map(lambda entry: self._run(self._flows.settle(entry, timeout)), entries)
            return list(settled)

    def close_purchase(
        self, order_number: str, statement: str, *, since: Day, until: Day
    ) -> Outcome:
        """Settles an open purchase that is too old to be sent, by what the statement says.

        The statement is that of `reconcile`. Its period must contain every attempt, and five
        minutes on each side. With a debit of the purchase's key, it was bought; without one it is
        refused, with the code `not_debited`.
        """
        return self._run(self._flows.close(order_number, statement, since, until))

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

    def sync(
        self, known: Iterable[int] = (), *, topups: bool = False
    ) -> Catalogue[Union[Product, TopUpProduct]]:
        """A complete copy of the catalogue. `known` are the ids of your last copy."""
        return self._run(self._flows.sync(known, topups=topups))

    def watch(
        self,
        references: Iterable[str],
        *,
        every: float = POLL_SECONDS,
        refund_patience: float = REFUND_PATIENCE,
    ) -> Iterator[Order]:
        """Yields each top-up when it is delivered, or failed and refunded.

        An outage only delays it. Raises ReferenceNotFound at the end if the client has no such
        order.
        """
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
        return self._send(step)

    def _send(self, step: Http) -> Reply:
        ends = time.monotonic() + min(LONGEST_REPLY, step.seconds or LONGEST_REPLY)
        content = bytearray()
        try:
            with self._http.stream(**self._session.arguments(step)) as response:
                for part in response.iter_bytes():
                    content += part
                    if time.monotonic() > ends or len(content) > LARGEST_REPLY:
                        return Foreign(0, "the response was too long or too slow")
                request_id = response.headers.get("X-Request-Id")
                return read_reply(response.status_code, bytes(content), request_id)
        except (httpx.HTTPError, httpx.StreamError) as problem:
            return no_reply(problem)
