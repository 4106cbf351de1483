"""The client for programs with asyncio. Its methods are those of `Client`."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Optional, TypeVar, Union

import httpx

from voucher_topup import core
from voucher_topup.client import LARGEST_REPLY, LONGEST_REPLY, Session, no_reply
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
from voucher_topup.journal import Entry, Journal
from voucher_topup.models import Balance, Order, Outcome, Ping, Product, TopUpProduct
from voucher_topup.reconciling import Day, Reconciliation, reconcile
from voucher_topup.wire import Foreign, Reply, read_reply

T = TypeVar("T")


class AsyncClient:
    """Buys through one API key. Calls of the journal run in a thread."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        journal: Journal,
        *,
        rules: core.Rules = core.RULES,
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        self._session = Session(base_url, api_key)
        self._flows = Flows(journal, rules=rules)
        self._is_ours = http is None
        self._http = http or httpx.AsyncClient()

    def __repr__(self) -> str:
        return repr(self._session).replace("Session", "AsyncClient", 1)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._is_ours:
            await self._http.aclose()

    async def prepare(
        self,
        order_number: str,
        purchase: Mapping[str, object],
        *,
        journal: Optional[Journal] = None,
        key: Optional[str] = None,
    ) -> None:
        await self._run(self._flows.prepare(order_number, purchase, journal, key))

    async def complete(self, order_number: str, *, timeout: Optional[float] = None) -> Outcome:
        return await self._run(self._flows.complete(order_number, timeout))

    async def buy(
        self,
        order_number: str,
        purchase: Mapping[str, object],
        *,
        key: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Outcome:
        return await self._run(self._flows.buy(order_number, purchase, key, timeout))

    async def retry(self, order_number: str, *, timeout: Optional[float] = None) -> Outcome:
        return await self._run(self._flows.retry(order_number, timeout))

    async def resume(self, *, timeout: Optional[float] = None, at_once: int = 4) -> list[Outcome]:
        turns = asyncio.Semaphore(at_once)

        async def settle(entry: Entry) -> Outcome:
            async with turns:
                return await self._run(self._flows.settle(entry, timeout))

        entries = await self._do(Store(self._flows.journal.open_entries))
        return list(await asyncio.gather(*map(settle, entries)))

    async def close_purchase(
        self, order_number: str, statement: str, *, since: Day, until: Day
    ) -> Outcome:
        return await self._run(self._flows.close(order_number, statement, since, until))

    async def ping(self) -> Ping:
        return await self._run(self._flows.ping())

    async def balance(self) -> Balance:
        return await self._run(self._flows.balance())

    async def products(self, search: str = "", *, in_stock: bool = False) -> list[Product]:
        return await self._run(self._flows.products(search, in_stock))

    async def product(self, product_id: int) -> Product:
        return await self._run(self._flows.product(product_id))

    async def topup_products(self, search: str = "") -> list[TopUpProduct]:
        return await self._run(self._flows.topup_products(search))

    async def topup_product(self, product_id: int) -> TopUpProduct:
        return await self._run(self._flows.topup_product(product_id))

    async def order(self, reference: str) -> Order:
        return await self._run(self._flows.order(reference))

    async def since(self, reference: Optional[str]) -> list[Order]:
        return await self._run(self._flows.since(reference))

    async def sync(
        self, known: Iterable[int] = (), *, topups: bool = False
    ) -> Catalogue[Union[Product, TopUpProduct]]:
        return await self._run(self._flows.sync(known, topups=topups))

    async def watch(
        self,
        references: Iterable[str],
        *,
        every: float = POLL_SECONDS,
        refund_patience: float = REFUND_PATIENCE,
    ) -> AsyncIterator[Order]:
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
                result = await self._do(step)

    async def reconcile(
        self, statement: str, *, since: Optional[Day] = None, until: Optional[Day] = None
    ) -> Reconciliation:
        return await asyncio.get_running_loop().run_in_executor(
            None, lambda: reconcile(statement, self._flows.journal, since=since, until=until)
        )

    async def _run(self, flow: Flow[T]) -> T:
        result: Any = None
        try:
            while True:
                try:
                    step = flow.send(result)
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]
                result = await self._do(step)
        finally:
            flow.close()

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, Store):
            return await asyncio.get_running_loop().run_in_executor(None, step.call)
        assert isinstance(step, Http)  # noqa: S101
        return await self._send(step)

    async def _send(self, step: Http) -> Reply:
        ends = time.monotonic() + min(LONGEST_REPLY, step.seconds or LONGEST_REPLY)
        content = bytearray()
        try:
            async with self._http.stream(**self._session.arguments(step)) as response:
                async for part in response.aiter_bytes():
                    content += part
                    if time.monotonic() > ends or len(content) > LARGEST_REPLY:
                        return Foreign(0, "the response was too long or too slow")
                request_id = response.headers.get("X-Request-Id")
                return read_reply(response.status_code, bytes(content), request_id)
        except (httpx.HTTPError, httpx.StreamError) as problem:
            return no_reply(problem)
