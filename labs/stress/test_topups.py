"""Buys many top-ups while operators, sweeps and pollers act at random and processes are killed.

STRESS_TOPUPS is the number of purchases; the default suits a run of all tests. STRESS_SEED repeats
the random choices of a run, but not the timing of its threads and processes.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from operators.upkeep.reconcile import reconcile
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import outcome, start
from tests.factories import (
    Merchant,
    make_account,
    make_client,
    make_operator,
    make_topup_product,
    move_now,
)
from tests.live import API, LiveServer, live_server
from tests.neighbour import ours
from tests.tasks.running import Broker, Crew, wait_until
from topups.fulfilment.fulfilments import MoveRefused, Operator
from topups.fulfilment.refunds import refunds_due, sweep_refunds
from topups.fulfilment.transitions import OPEN, Move
from topups.models import Channel, Fulfilment, RejectReason, TopUpProduct
from wallets.models import LedgerEntry, Wallet

pytestmark = pytest.mark.django_db(transaction=True)

ORDERS = int(os.environ.get("STRESS_TOPUPS", "120"))
SEED = int(os.environ.get("STRESS_SEED", str(random.randrange(10**6))))
BUYERS = 4
KILLS = 8  # at least: each of two workers, the broker and the scheduler twice
ENDING = (Move.COMPLETE, Move.REJECT, Move.REJECT_UNREFUNDED)
BALANCE, STOCK = Decimal("100000.0000"), 10_000


@dataclass
class Stress:
    """The actors of the test, and the purchases and moves that they were told succeeded."""

    merchants: list[Merchant]
    products: list[TopUpProduct]
    operators: list[Operator]
    bought: dict[str, tuple[Merchant, Decimal]] = field(default_factory=dict)
    ended: dict[str, list[tuple[Move, RejectReason]]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def buy(self, number: int) -> None:
        chance = random.Random(SEED + number)
        for _ in range(ORDERS // BUYERS):
            merchant, product = chance.choice(self.merchants), chance.choice(self.products)
            answer = merchant.buy(
                delivery_type="top_up", system_product_id=product.pk, player_id="007"
            )
            self.over.wait(chance.expovariate(10))
            with self.lock:
                self.told[outcome(answer)] += 1
                if answer.status_code == 201:
                    reference = answer.json()["data"]["reference"]
                    self.bought[reference] = (merchant, product.price)

    def operate(self, number: int) -> None:
        """Makes random moves of random orders; many of the moves are refused."""
        chance = random.Random(SEED + 100 + number)
        while not self.over.wait(chance.random() / 10):
            with self.lock:
                references = list(self.bought)
            if references:
                # Prefers recent orders, which are more often still open.
                place = len(references) - 1 - int(chance.expovariate(1 / 20)) % len(references)
                move = chance.choice(list(Move))
                self.move(references[place], move, chance)

    def move(self, reference: str, move: Move, chance: random.Random) -> None:
        reason = chance.choice(list(RejectReason))
        try:
            move_now(
                reference=reference,
                move=move,
                operator=chance.choice(self.operators),
                reason=reason,
            )
        except MoveRefused:
            with self.lock:
                self.refused[move] += 1
            return
        with self.lock:
            self.told[move] += 1
            if move in ENDING:
                self.ended.setdefault(reference, []).append((move, reason))

    def sweep(self) -> None:
        while not self.over.wait(0.3):
            sweep_refunds()

    def watch(self, number: int) -> None:
        """Polls orders. Each response must be consistent, and must not undo an earlier one."""
        chance = random.Random(SEED + 200 + number)
        seen: dict[str, dict[str, Any]] = {}
        while not self.over.wait(0.05):
            with self.lock:
                if not self.bought:
                    continue
                reference = chance.choice(list(self.bought))
                merchant, price = self.bought[reference]
            order = merchant.get(f"/orders/{reference}").json()["data"]
            problem = inconsistency(order, seen.get(reference), price)
            if problem:
                with self.lock:
                    self.wrong.append(f"{problem}: {seen.get(reference)} then {order}")
            seen[reference] = order

    def finish(self) -> None:
        """A senior operator ends every order that is still open, at random."""
        chance = random.Random(SEED + 300)
        senior = next(operator for operator in self.operators if operator.is_senior)
        for row in ours(Fulfilment).filter(status__in=OPEN):
            ways = [Move.COMPLETE, Move.REJECT]
            if row.status == "pending_review":
                ways.append(Move.REJECT_UNREFUNDED)
            move, reason = chance.choice(ways), chance.choice(list(RejectReason))
            move_now(reference=row.order_reference, move=move, operator=senior, reason=reason)
            self.ended.setdefault(row.order_reference, []).append((move, reason))


def inconsistency(
    order: dict[str, Any], before: dict[str, Any] | None, price: Decimal
) -> str | None:
    """The problem of an order, by itself or compared with an earlier response; None if there is
    none."""
    ended = order["fulfilment_status"] in ("completed", "failed")
    if order["status"] != (order["fulfilment_status"] if ended else "pending"):
        return "status does not follow fulfilment_status"
    if (order["failure_reason"] is None) == (order["status"] == "failed"):
        return "failure_reason without a failure, or a failure without it"
    if order["refunded"] and order["status"] != "failed":
        return "refunded but not failed"
    if order["codes"] or Decimal(str(order["total_price"])) != price:
        return "wrong codes or price"
    if before is None:
        return None
    if before["status"] != "pending" and (before["status"], before["failure_reason"]) != (
        order["status"],
        order["failure_reason"],
    ):
        return "an ended order changed"
    if before["refunded"] and not order["refunded"]:
        return "a refund was undone"
    return None


def kill_and_replace(crew: Crew, broker: Broker, work: Callable[[], bool]) -> int:
    """Kills and restarts workers, broker and scheduler in turn until the work is done.

    Returns the number of kills.
    """
    chance = random.Random(SEED + 400)
    workers = [crew.impatient_worker() for _ in range(2)]
    beat = crew.beat("sweep-refunds")
    kills = 0
    while kills < KILLS or not work():
        time.sleep(chance.uniform(1, 4))
        turn = kills % 4
        if turn == 2:
            broker.kill()
            time.sleep(chance.random())
            broker.start()
        elif turn == 3:
            beat.kill()
            beat.start()
        else:
            workers[turn].kill()
            workers[turn].start()
        kills += 1
    return kills


def test_many_top_ups_with_random_moves_and_kills(broker: Broker, crew: Crew) -> None:
    print(f"STRESS_SEED={SEED} STRESS_TOPUPS={ORDERS}")  # noqa: T201  repeats this run
    environment = {**API, "CELERY_BROKER_URL": broker.url}
    with live_server(environment, workers=2) as server:
        stress = open_shop(server)
        with ThreadPoolExecutor(16) as pool:
            buyers = [start(pool, stress.buy, number) for number in range(BUYERS)]
            others = [start(pool, stress.operate, number) for number in range(5)]
            others += [start(pool, stress.watch, number) for number in range(3)]
            others += [start(pool, stress.sweep)]
            try:
                kills = kill_and_replace(
                    crew, broker, lambda: all(buyer.done() for buyer in buyers)
                )
            finally:
                stress.over.set()
            for future in [*buyers, *others]:
                future.result()
        assert not stress.wrong, stress.wrong[:3]
        stress.finish()
        wait_until(lambda: not refunds_due().exists(), "no refund is due")
        check_orders(stress)
    check_money_and_stock(stress)
    assert_books_balance()
    assert reconcile()["findings"] == []
    assert stress.told["bought"] == len(stress.bought)
    wait_until(lambda: finished_tasks(crew), "a worker has finished a task")
    done = finished_tasks(crew)
    print(f"{kills} kills, {done} tasks finished by workers,", dict(stress.told))  # noqa: T201
    assert "Unrecoverable" not in crew.logs  # no worker crashed by itself
    for move in Move:
        assert stress.refused[move] or stress.told[move], f"{move} was never tried"


def finished_tasks(crew: Crew) -> int:
    """The number of tasks that workers finished, including refunds that were already done."""
    return sum(len(celery.events("task_succeeded")) for celery in crew.all)


def open_shop(server: LiveServer) -> Stress:
    accounts = [make_account(balance=str(BALANCE)) for _ in range(2)]
    merchants = [
        Merchant(make_client(account, rate_limit_per_minute=1_000_000), http=server.http)
        for account in accounts
        for _ in range(2)
    ]
    return Stress(
        merchants=merchants,
        products=[
            make_topup_product(price="4.99", available_stock=STOCK),
            make_topup_product(price="0.0725", available_stock=STOCK),
            make_topup_product(price="12.50", available_stock=5),  # runs out of stock
            make_topup_product(price="1.00"),
        ],
        operators=[
            make_operator(senior=senior, channel=channel)
            for senior in (False, True)
            for channel in (Channel.ADMIN, Channel.COMMAND, Channel.TELEGRAM)
        ],
    )


def check_orders(stress: Stress) -> None:
    """Each order ended once, and the merchant reads the outcome that its operator was told."""
    assert stress.ended.keys() == stress.bought.keys()
    for reference, (merchant, price) in stress.bought.items():
        [(move, _)] = stress.ended[reference]  # exactly one operator was told of success
        order = merchant.get(f"/orders/{reference}").json()["data"]
        assert inconsistency(order, None, price) is None, order
        assert order["status"] == ("completed" if move == Move.COMPLETE else "failed")
        assert order["refunded"] is (move == Move.REJECT)
        credits_ = ours(LedgerEntry).filter(kind="refund", order_reference=reference)
        assert [entry.amount for entry in credits_] == ([price] if move == Move.REJECT else [])


def check_money_and_stock(stress: Stress) -> None:
    kept: Counter[int] = Counter()
    spent: dict[int, Decimal] = {}
    for row in ours(Fulfilment).all():
        [(move, reason)] = stress.ended[row.order_reference]
        if move != Move.REJECT:
            spent[row.account_id] = spent.get(row.account_id, Decimal(0)) + row.amount
        if move != Move.REJECT or reason == RejectReason.NO_STOCK:
            kept[row.product_id] += 1
    for wallet in ours(Wallet).all():
        assert wallet.balance == BALANCE - spent.get(wallet.pk, Decimal(0))
    for product, stock in zip(stress.products, (STOCK, STOCK, 5, None), strict=True):
        product.refresh_from_db()
        expected = None if stock is None else stock - kept[product.pk]
        assert product.available_stock == expected, product
