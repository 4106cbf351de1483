"""Judges a merchant's program, in any language, by what it sends and by the ledger.

The program is started with these variables, and again after each kill. It ends with exit code 0
when every order has an outcome.

    VOUCHER_BASE_URL, VOUCHER_API_KEY   where to buy
    EXAM_ORDERS      a file with one JSON object per line: {"order_number", "body"}
    EXAM_RESULTS     a file to which the program appends one JSON object per line:
                     {"order_number", "outcome": "bought" or "refused", "reference", "total"}
    EXAM_FOLDER      an empty folder for whatever the program keeps

With `each`, the command is started once for each order, with the body and an idempotency key as its
last arguments. It ends with 0 (bought; the order is printed), 1 (refused; the error is printed) or
2 (unknown). It is started again with the same key after 2 and after a kill, until it has bought or
prints order_refused 90 seconds later: other refusals say nothing about the starts before.

With VOUCHER_SECOND, such as 0.2, these 90 seconds and the faults are as much shorter, and so must
be the pauses of the program. `retry_after_seconds` of the service stays as long as it is.
"""

import json
import os
import random
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from django.db import connection

from orders.models import Order
from simulator.faults import UNKNOWN, Choices, Fault
from simulator.proxy import Exchange, Simulator, running
from simulator.shop import Shop, make_operator, work_on_orders

FAULTS = [
    *(Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.CUT, Fault.ERROR_BEFORE, Fault.ERROR_AFTER),
    *(Fault.TIMEOUT, Fault.PORTAL, Fault.ABANDONED, Fault.RATE_LIMITED, Fault.TWICE),
    *(Fault.AGAIN_LATER, Fault.CLIENT_DISABLED),
]
# After an unknown outcome the service refuses. The first attempt never arrives, or it arrives late.
DOUBTS = [
    [Fault.LOST_BEFORE, *[Fault.OUT_OF_STOCK] * 1000],
    [Fault.LATE, Fault.OUT_OF_STOCK],
]
EARLY = 0.1  # seconds after the answer: a retry that comes sooner has not waited
ON_ITS_WAY = 1.0  # seconds after a 429, in which other requests may arrive that were sent before
WINDOW = 59.0  # a second less than a minute: requests arrive with other distances than they had
LIFETIME = 90.0  # of an attempt without an answer; an earlier order_refused is not final
JITTER = 0.9  # of the lifetime: the program counts it from its own clock
# The service has looked at the key, or the same bytes can never buy.
FINAL = frozenset(
    {
        *("order_refused", "validation_failed", "variation_mismatch"),
        *("product_reference_not_found", "product_reference_ambiguous"),
    }
)
# The service's own answers that do not say that nothing was bought.
PASSING = frozenset({"rate_limited", "request_in_progress", "request_abandoned"})
LONGEST = 3600.0  # of a whole exam
STARTS = 10_000
MISTAKES = {
    "double_debit": "An order was debited more than once.",
    "lost_order": "An order was debited, and the program does not know it as bought.",
    "no_outcome": "An order has no outcome, although the program has ended.",
    "nothing_bought": "The program has bought nothing.",
    "false_refusal": "The program says refused, and the service has not refused the order.",
    "early_refusal": "The program says refused, and an earlier attempt could still arrive: after an"
    " unknown outcome, only an order_refused 90 seconds later is final.",
    "wrong_outcome": "The program says bought, and nothing was debited.",
    "new_key": "An order was sent with another idempotency key after an unknown outcome.",
    "changed_bytes": "A retry has other bytes than the request before.",
    "early_retry": "A request was sent before the time to wait was over.",
    "above_limit": "More requests were sent in a minute than /ping allows.",
    "rounding": "The program has another amount than the order.",
    "secret": "The output of the program contains the API key or a code.",
    "failed": "The program ended with another exit code, or did not end.",
}


@contextmanager
def repeating(work: Callable[[], object], pause: float) -> Iterator[None]:
    """Calls `work` in a thread after each pause, in seconds, until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(pause):
            work()
        connection.close()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@dataclass
class Report:
    """How often each mistake was made, and one example of each."""

    purchases: int
    requests: int = 0
    kills: int = 0
    faults: int = 0
    mistakes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, mistake: str, example: str) -> None:
        self.mistakes[mistake] += 1
        self.examples.setdefault(mistake, example)

    def __str__(self) -> str:
        lines = [
            f"{self.purchases} orders, {self.requests} requests, {self.faults} faults,"
            f" {self.kills} kills."
        ]
        for name, number in sorted(self.mistakes.items()):
            lines.append(f"{name}: {number}. {MISTAKES[name]} For example: {self.examples[name]}.")
        lines.append("FAILED" if self.mistakes else "PASSED")
        return "\n".join(lines)


@dataclass
class _Start:
    """A purchase of a program that is started for each order. An order_refused settles it if the
    program was started at `final_from` or later; None: no earlier start was unknown."""

    order: dict[str, Any]
    key: str
    final_from: float | None = None


class Exam:
    """One program, one shop, and one proxy before the service. `doubts`: how many orders meet each
    of `DOUBTS`."""

    def __init__(
        self,
        shop: Shop,
        service_port: int,
        *,
        purchases: int = 500,
        seed: int = 7,
        rate: float = 0.3,
        kills: int = 20,
        doubts: int = 2,
        faults: Sequence[Fault] = FAULTS,
    ) -> None:
        self._shop = shop
        self._chance = random.Random(seed)  # noqa: S311
        self._second = float(os.environ.get("VOUCHER_SECOND", "1"))
        scenario = {"seed": seed, "rate": rate, "faults": [str(fault) for fault in faults]}
        choices = Choices(scenario)
        self._simulator = Simulator(service_port, choices, second=self._second)
        self._orders = [self._order(number) for number in range(purchases)]
        doubtful = self._chance.sample(self._orders, min(doubts * len(DOUBTS), purchases // 2))
        for number, order in enumerate(doubtful):
            choices.plan(order["body"], DOUBTS[number % len(DOUBTS)])
        self._kills = kills
        self._runs = 0
        self._report = Report(purchases)
        self._output = b""  # what may contain no secret

    def run(self, command: Sequence[str], *, each: bool = False) -> Report:
        """Runs the program until it has ended, and judges it."""
        with tempfile.TemporaryDirectory(prefix="voucher-exam-") as place:
            folder = Path(place)
            deliver = partial(work_on_orders, make_operator())
            with running(self._simulator), repeating(deliver, 0.5):
                if each:
                    self._run_each(command, folder)
                else:
                    self._run_list(command, folder)
            self._judge(folder)
        return self._report

    def progress(self) -> str:
        """The numbers of orders, requests and kills until now, as a line for a terminal."""
        exchanges = list(self._simulator.exchanges)
        sent = len({each.body for each in exchanges if each.method == "POST"})
        return (
            f"{sent} of {len(self._orders)} orders sent, {len(exchanges)} requests,"
            f" {self._report.kills} kills"
        )

    def _order(self, number: int) -> dict[str, Any]:
        """No two orders have the same content, so each request names its order."""
        body: dict[str, Any]
        if number % 2:
            products = self._shop.topup_products
            body = {
                "delivery_type": "top_up",
                "system_product_id": products[number % len(products)],
                "player_id": f"00{number}",
            }
        else:
            products = self._shop.products
            half = number // 2
            body = {
                "product_id": products[half % len(products)],
                "quantity": 1 + half // len(products),
            }
        return {"order_number": f"order-{number}", "body": body}

    # Running

    def _run_list(self, command: Sequence[str], folder: Path) -> None:
        orders = folder / "orders.jsonl"
        orders.write_text("".join(json.dumps(order) + "\n" for order in self._orders))
        kept = folder / "kept"
        kept.mkdir()
        variables = {
            "EXAM_ORDERS": str(orders),
            "EXAM_RESULTS": str(folder / "results.jsonl"),
            "EXAM_FOLDER": str(kept),
        }
        ends = time.monotonic() + LONGEST
        for start in range(STARTS):
            kill_after = self._next_kill(len(self._orders) // (self._kills + 1) + 1)
            code, printed = self._start(command, variables, kill_after, ends)
            self._output += printed
            if code == 0:
                return
            if code != -signal.SIGKILL:
                text = self._output.decode(errors="replace").replace(self._shop.key, "…")
                last = text.strip().rpartition("\n")[2]
                self._report.add("failed", f"exit code {code} at start {start + 1}: {last[:200]}")
                return
        self._report.add("failed", "it never ended")

    def _run_each(self, command: Sequence[str], folder: Path) -> None:
        """The exam is the shop: it keeps the keys, and starts the program again."""
        ends = time.monotonic() + LONGEST
        every = len(self._orders) // (self._kills + 1) + 1
        starts = [_Start(order, secrets.token_hex(16)) for order in self._orders]
        with (folder / "results.jsonl").open("w") as results:
            later = []
            for number, start in enumerate(starts):
                kill_after = 1 if number % every == every - 1 else None
                if not self._settle(command, start, kill_after, ends, results):
                    later.append(start)
            for start in later:
                assert start.final_from is not None  # noqa: S101
                time.sleep(max(0.0, start.final_from - time.monotonic()))
                self._settle(command, start, None, ends, results)

    def _settle(
        self,
        command: Sequence[str],
        start: _Start,
        kill_after: int | None,
        ends: float,
        results: TextIO,
    ) -> bool:
        """Starts the program until the order has an outcome. Returns False if it is refused, and an
        earlier attempt could still arrive."""
        arguments = [*command, json.dumps(start.order["body"]), start.key]
        while True:
            began = time.monotonic()
            code, printed = self._start(arguments, {}, kill_after, ends)
            kill_after = None
            if code in (2, -signal.SIGKILL):
                start.final_from = time.monotonic() + LIFETIME * self._second
                continue
            reason = _printed_refusal(printed) if code == 1 and start.final_from else None
            if reason == "order_refused" and start.final_from and began < start.final_from:
                return False
            if reason in (None, "order_refused"):
                break
        if code not in (0, 1):
            self._report.add("failed", f"exit code {code}")
            return True
        result = {"order_number": start.order["order_number"], "outcome": "refused"}
        if code == 0:
            result |= {"outcome": "bought", **_printed_order(printed)}
        results.write(json.dumps(result) + "\n")
        return True

    def _start(
        self,
        command: Sequence[str],
        variables: dict[str, str],
        kill_after: int | None,
        ends: float,
    ) -> tuple[int, bytes]:
        """Runs the command once, and kills it after so many requests. Returns its exit code and its
        standard output."""
        first = len(self._simulator.exchanges)
        self._runs += 1
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            program = subprocess.Popen(
                command,
                env={
                    **os.environ,
                    **variables,
                    "VOUCHER_BASE_URL": self._simulator.base_url_of(self._runs),
                    "VOUCHER_API_KEY": self._shop.key,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            while program.poll() is None:
                sent = len(self._simulator.exchanges) - first
                if (kill_after and sent >= kill_after) or time.monotonic() > ends:
                    os.killpg(program.pid, signal.SIGKILL)
                    program.wait()
                    if kill_after:
                        self._report.kills += 1
                time.sleep(0.005)
            output.seek(0)
            errors.seek(0)
            printed = output.read()
            self._output += errors.read()
        return (124 if time.monotonic() > ends else program.returncode), printed

    def _next_kill(self, every: int) -> int | None:
        if self._report.kills >= self._kills:
            return None
        return self._chance.randint(1, 2 * every)

    # Judging

    def _judge(self, folder: Path) -> None:
        self._simulator.wait_for_late_requests()
        exchanges = sorted(self._simulator.exchanges, key=lambda each: each.at)
        self._report.requests = len(exchanges)
        self._report.faults = sum(each.fault is not Fault.NONE for each in exchanges)
        self._judge_requests(exchanges)
        self._judge_pace(exchanges)
        self._judge_books(_results(folder / "results.jsonl"), exchanges)
        self._judge_secrets()

    def _judge_requests(self, exchanges: Sequence[Exchange]) -> None:
        for name, sent in _by_order(exchanges).items():
            bodies: dict[str, bytes] = {}
            unknown: str | None = None
            for number, exchange in enumerate(sent):
                if unknown not in (None, exchange.key):
                    self._report.add("new_key", name)
                    unknown = None
                if bodies.setdefault(exchange.key, exchange.body) != exchange.body:
                    self._report.add("changed_bytes", name)
                if _is_unknown(exchange):
                    unknown = exchange.key
                elif exchange.received == 201 or self._is_final(sent, number):
                    unknown = None

    def _judge_pace(self, exchanges: Sequence[Exchange]) -> None:
        """A wait holds for one run: the exam starts the next run at once. It begins with the
        answer; what was sent before may arrive a moment later."""
        limits: list[Exchange] = []
        last: dict[tuple[int, str], Exchange] = {}
        limit = self._shop.client.rate_limit_per_minute
        times: list[float] = []
        for exchange in exchanges:
            for limited in limits:
                if exchange.run == limited.run and _is_too_early(exchange, limited):
                    seconds = _retry_after(limited)
                    what = f"{exchange.method} {exchange.path} within {seconds} s of rate_limited"
                    self._report.add("early_retry", what)
                    limits.remove(limited)
                    break
            if _retry_after(exchange):
                limits.append(exchange)
            if exchange.method == "POST":
                before = last.get((exchange.run, exchange.key))
                if before and _is_unknown(before) and exchange.at - before.answered < EARLY:
                    self._report.add("early_retry", "a purchase at once after an unknown outcome")
                last[exchange.run, exchange.key] = exchange
            times = [each for each in times if each > exchange.at - WINDOW] + [exchange.at]
            if len(times) > limit:
                self._report.add("above_limit", f"{len(times)} requests in a minute")

    def _judge_books(
        self, results: dict[str, dict[str, Any]], exchanges: Sequence[Exchange]
    ) -> None:
        bought = _orders_of(self._shop)
        sent = _by_order(exchanges)
        for order in self._orders:
            name = order["order_number"]
            signature = _signature(json.dumps(order["body"]).encode())
            debited = bought.get(signature, [])
            result = results.get(name, {})
            outcome = result.get("outcome")
            if len(debited) > 1:
                self._report.add("double_debit", name)
            if outcome not in ("bought", "refused"):
                self._report.add("no_outcome", name)
            if debited and outcome != "bought":
                self._report.add("lost_order", name)
            if outcome == "refused":
                self._judge_refusal(name, sent.get(signature, []))
            if outcome == "bought":
                totals = dict(debited)
                reference = str(result.get("reference"))
                if reference not in totals:
                    self._report.add("wrong_outcome", name)
                elif not _is_exact(result.get("total"), totals[reference]):
                    self._report.add("rounding", name)
        if not bought:
            self._report.add("nothing_bought", f"0 of {len(self._orders)} orders")

    def _judge_refusal(self, name: str, sent: Sequence[Exchange]) -> None:
        numbers = range(len(sent))
        if not any(_refused_with(exchange) for exchange in sent):
            self._report.add("false_refusal", name)
        elif not any(self._is_final(sent, number) for number in numbers):
            self._report.add("early_refusal", name)

    def _is_final(self, sent: Sequence[Exchange], number: int) -> bool:
        """Whether this answer says that none of the attempts so far has bought, or can."""
        code = _refused_with(sent[number])
        unknown = [before.at for before in sent[:number] if _is_unknown(before)]
        if not code or not unknown:
            return bool(code)
        lifetime = LIFETIME * self._second * JITTER
        return code in FINAL and sent[number].at - unknown[-1] >= lifetime

    def _judge_secrets(self) -> None:
        text = self._output.decode(errors="replace")
        if self._shop.key in text:
            self._report.add("secret", "the API key")
        for exchange in self._simulator.exchanges:
            for code in _codes(exchange.content):
                if code in text:
                    self._report.add("secret", "a voucher code")
                    return


def _printed_order(printed: bytes) -> dict[str, str]:
    """Reference and total of the order in the last line. Empty if there is none."""
    try:
        order = json.loads(printed.splitlines()[-1], parse_float=str)
        order = order.get("data", order)
        return {"reference": str(order["reference"]), "total": str(order["total_price"])}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


def _printed_refusal(printed: bytes) -> str | None:
    """The error code in the last line. None if there is none: the program is taken at its word."""
    try:
        refusal = json.loads(printed.splitlines()[-1])
        return str(refusal.get("error", refusal)["code"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _is_unknown(exchange: Exchange) -> bool:
    """Whether the program cannot know after this answer whether it has bought."""
    return exchange.fault in UNKNOWN or exchange.status >= 500


def _refused_with(exchange: Exchange) -> str | None:
    """The code of the service's own refusal, if the program received it."""
    if _is_unknown(exchange) or not 400 <= exchange.received < 500:
        return None
    try:
        code = str(json.loads(exchange.content)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return None
    return None if code in PASSING else code


def _is_too_early(exchange: Exchange, limited: Exchange) -> bool:
    """Whether the request was sent in the wait after the 429. The program may have sent other
    requests before it read this answer."""
    after = exchange.at - limited.answered
    is_same = (exchange.key or exchange.path) == (limited.key or limited.path)
    return (0 if is_same else ON_ITS_WAY) <= after < _retry_after(limited)


def _by_order(exchanges: Sequence[Exchange]) -> dict[str, list[Exchange]]:
    """The attempts to buy each order."""
    found: dict[str, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        if exchange.method == "POST":
            found[_signature(exchange.body)].append(exchange)
    return found


def _signature(body: bytes) -> str:
    """Which order a request is for: what is the same in each attempt."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        return "no JSON object"
    if player := content.get("player_id"):
        return f"player {player}"
    return f"product {content.get('product_id')} x {content.get('quantity')}"


def _orders_of(shop: Shop) -> dict[str, list[tuple[str, Decimal]]]:
    """References and totals of the shop's orders, by signature."""
    found: dict[str, list[tuple[str, Decimal]]] = defaultdict(list)
    for order in Order.objects.filter(client=shop.client).select_related("shelf", "fulfilment"):
        if order.fulfilment:
            name = f"player {order.fulfilment.player_id}"
        else:
            assert order.shelf is not None  # noqa: S101
            name = f"product {order.shelf.product_id} x {order.quantity}"
        found[name].append((order.reference, order.total_price))
    return found


def _results(path: Path) -> dict[str, dict[str, Any]]:
    """The last result of each order."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = {}
    for line in lines:
        try:
            result = json.loads(line, parse_float=str)
            results[str(result["order_number"])] = result
        except (ValueError, KeyError, TypeError):
            continue  # a line that a kill cut
    return results


def _is_exact(text: Any, total: Decimal) -> bool:
    try:
        return Decimal(str(text)) == total
    except ArithmeticError:
        return False


def _retry_after(exchange: Exchange) -> int:
    if exchange.received != 429 or exchange.fault is Fault.CROWD:
        return 0
    try:
        return int(json.loads(exchange.content)["error"]["retry_after_seconds"])
    except (ValueError, KeyError):
        return 0


def _codes(content: bytes) -> list[str]:
    try:
        data = json.loads(content).get("data") or {}
    except (ValueError, AttributeError):
        return []
    orders = data.get("items", [data]) if isinstance(data, dict) else []
    return [code["code"] for order in orders for code in order.get("codes", ())]
