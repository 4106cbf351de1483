"""A merchant moves while their programs buy, and each step is killed once.

The programs go through HAProxy and do what the contract says: they send the same key and content
until an answer is final. Afterwards the sums over both cells are right.
"""

import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from accounts.keys import issue_key
from catalogue.codes import open_code
from catalogue.models import VoucherCode
from orders.models import Order
from tests.api.raw import RawAnswer
from tests.cells.conftest import Service
from tests.cells.two_cells import PRODUCT, Cell
from tests.concurrency.racing import holding_locks, wait_for_waiting
from tests.factories import make_account, make_client, make_key
from tests.live import ANSWER_PATIENCE
from tests.quick_starts import QuickProcess
from tests.tasks.running import wait_until
from wallets.models import LedgerEntry, Wallet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.haproxy]

BODY = json.dumps({"product_id": PRODUCT, "quantity": 1}).encode()
BALANCE, CODES = Decimal("5000.00"), 2000  # more than the programs can buy
PAUSE = 0.1  # of a program, before it sends the same request again
RETRIED = {"server_error", "request_in_progress"}


class Program:
    """Buys one code after the other, each until the answer is final."""

    def __init__(self, service: Service, api_key: str) -> None:
        self._front = service.proxy.front
        self._headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        self.bought: dict[str, bytes] = {}  # by idempotency key
        self.retried: Counter[str] = Counter()

    def run(self, keys: "count[int]", stop: threading.Event) -> None:
        while not stop.is_set():
            key = f"key-{next(keys)}"
            self.bought[key] = self._buy(key)

    def send(self, key: str) -> RawAnswer:
        headers = {**self._headers, "Idempotency-Key": key}
        return self._front.ask("POST", "/api/v1/orders", headers, BODY)

    def _buy(self, key: str) -> bytes:
        end = time.monotonic() + ANSWER_PATIENCE
        while time.monotonic() < end:
            try:
                answer = self.send(key)
            except (OSError, HTTPException):
                self.retried["no answer"] += 1
                continue
            if answer.status == 201:
                return answer.body
            code = answer.json().get("error", {}).get("code", str(answer.status))
            assert code in RETRIED or answer.status in (502, 503, 504), answer
            self.retried[code] += 1
            time.sleep(PAUSE)
        raise AssertionError(f"{key} was not answered")


def kill_at(process: QuickProcess) -> None:
    """kill -9, as soon as the process waits for a lock of the test."""
    wait_for_waiting()
    process.popen.kill()
    process.popen.wait(10)


def codes_in_stock(cell: Cell) -> list[str]:
    with cell.entered():
        stored = VoucherCode.objects.filter(order_id=None, shelf__product=PRODUCT)
        return [open_code(code.sealed, code.digest).code for code in stored]


def codes_of(answers: list[bytes]) -> list[str]:
    return [code["code"] for answer in answers for code in json.loads(answer)["data"]["codes"]]


@pytest.fixture
def programs(service: Service) -> list[Program]:
    """Of two clients: the key of one names cell `a`, the other is from before there were cells."""
    for cell in (service.a, service.b):
        cell.fill([f"load-{cell.name}-{number}" for number in range(CODES)])
    with service.a.entered():
        account = make_account(balance=str(BALANCE))
        clients = [make_client(account, rate_limit_per_minute=1_000_000) for _ in range(2)]
        keys = [issue_key(client=clients[0], actor=None), make_key(clients[1])]
    return [Program(service, key) for key in keys for _ in range(2)]


def test_nothing_is_lost_or_doubled(
    service: Service, programs: list[Program], tmp_path: Path
) -> None:
    a, b = service.a, service.b
    with a.entered():
        account = Wallet.objects.latest("account_id").pk
    stop, keys = threading.Event(), count()
    with ThreadPoolExecutor(len(programs)) as pool:
        running = [pool.submit(program.run, keys, stop) for program in programs]
        try:
            received = move_with_kills(service, programs, account, tmp_path / "file")
        finally:
            stop.set()
    for one in running:
        one.result()

    assert_sums_over_both_cells(service, programs, account, received["account"])
    for program in programs:
        for key, first in program.bought.items():
            again = program.send(key)
            assert (again.status, again.body) == (201, first)
            assert again.headers["Idempotent-Replay"] == "true"
    for cell in (a, b):
        assert cell.run("reconcile", "--decrypt")["findings"] == []


def move_with_kills(
    service: Service, programs: list[Program], account: int, file: Path
) -> dict[str, Any]:
    """The steps of docs/operate/cells.md. Returns what `receive_account` printed."""
    a, b = service.a, service.b
    words = ["send_account", account, "--to", "b", "--reference", "move", "--file", file]

    def sold() -> int:
        return sum(len(program.bought) for program in programs)

    def wait_for_sales() -> None:
        before = sold()
        wait_until(lambda: sold() >= before + 10, "ten more purchases", timeout=60)

    wait_for_sales()
    # Killed before it has closed the wallet: cell a sells on.
    with a.entered(), holding_locks("LOCK operators_accounttransfer IN EXCLUSIVE MODE"):
        kill_at(a.start(*words))
    wait_for_sales()

    # Killed while it writes the file: the account is closed, and nobody sells to it.
    with a.entered(), holding_locks("LOCK catalogue_referencelink IN ACCESS EXCLUSIVE MODE"):
        process = a.start(*words)
        wait_until(lambda: Wallet.objects.get(pk=account).closed_at, "the wallet is closed")
        kill_at(process)
    wait_until(lambda: any(p.retried["server_error"] for p in programs), "a purchase is refused")
    assert not file.exists()
    with a.entered():
        at_closing = Order.objects.count()

    # Run again, it writes the file. Then the other cell is killed before its commit.
    assert a.run_apart(*words).returncode == 0
    with b.entered(), holding_locks("LOCK operators_accounttransfer IN EXCLUSIVE MODE"):
        kill_at(b.start("receive_account", file))
    with b.entered():
        assert not Order.objects.exists()

    # It commits, and is lost before anybody reads what it printed. Run again, it says the same.
    done = [b.run_apart("receive_account", file) for _ in range(2)]
    assert [one.returncode for one in done] == [0, 0], done
    first, received = (json.loads(one.stdout) for one in done)
    assert received == {**first, "received_before": True}
    with a.entered():
        assert Order.objects.count() == at_closing

    assert a.run_apart("set_account", account, "--disable").returncode == 0
    service.proxy.move(received["moved_map"])
    wait_for_sales()
    return dict(received)


def assert_sums_over_both_cells(
    service: Service, programs: list[Program], left: int, arrived: int
) -> None:
    """What cell a has of the account is of the past. Cell b has all of it, and the rest."""
    answers = [answer for program in programs for answer in program.bought.values()]
    references = sorted(json.loads(answer)["data"]["reference"] for answer in answers)
    debits = {}
    for cell, account in ((service.a, left), (service.b, arrived)):
        with cell.entered():
            bought = LedgerEntry.objects.filter(wallet=account, kind="purchase")
            debits[cell.name] = sorted(str(entry.order_reference) for entry in bought)
            balance = Wallet.objects.get(pk=account).balance
            assert balance == BALANCE - len(debits[cell.name])
    assert debits["b"] == references  # one debit for each key
    assert set(debits["a"]) < set(debits["b"])  # and purchases in both cells

    handed_out = codes_of(answers)
    stock = [codes_in_stock(cell) for cell in (service.a, service.b)]
    everywhere = Counter(handed_out + stock[0] + stock[1])
    assert len(everywhere) == 2 * CODES
    assert set(everywhere.values()) == {1}  # each code is sold once, or in stock in one cell
    retried = sum((program.retried for program in programs), Counter[str]())
    counts = f"{len(references)} purchases, {len(debits['a'])} in cell a, retried {dict(retried)}"
    print(counts)  # noqa: T201  for docs/proof.md
