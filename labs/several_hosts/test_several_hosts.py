"""Each host of docs/operate/several-hosts.md is lost once while merchants buy; hosts come and go.

Nothing is lost or doubled. Every purchase succeeds within two tries, except while the database
fails over or replaces its synchronous standby.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.db import connection

from labs.crashes.test_refunds_by_workers import credits_of
from labs.installation.buyers import Bought, Buyers, assert_no_purchase_failed_or_doubled
from labs.installation.hosts import Installation, Machine, running_installation
from tests.commands import run
from tests.concurrency.books import assert_books_balance
from tests.factories import (
    make_account,
    make_client,
    make_key,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
)
from tests.tasks.running import wait_until
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [
    pytest.mark.patroni,
    pytest.mark.nginx,  # and HAProxy
    pytest.mark.rabbitmq,
    # Ten hosts and their load need both processors: beside other tests, refunds and retries wait.
    pytest.mark.skipif("SEVERAL_HOSTS" not in os.environ, reason="runs alone: SEVERAL_HOSTS=1"),
]

HOSTS = ["web1", "web2", "worker1", "worker2", "queue1", "queue2", "queue3", "db1", "db2", "db3"]
THREADS = 4
SALES = 40  # before and after each change
MOST_TRIES = 2
LONGEST_PAUSE = 7.0  # seconds without a sale while the database fails over


class Shop:
    """Merchants who buy codes and top-ups, and an operator who rejects some."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        accounts = [make_account(balance="1000000.00") for _ in range(4)]
        self._keys = [
            make_key(make_client(account, rate_limit_per_minute=1_000_000)) for account in accounts
        ]
        codes = [make_product(price="1.25", codes=6000).pk for _ in range(3)]
        topup = make_topup_product(price="2.00").pk
        self._bodies: list[dict[str, Any]] = [
            *({"product_id": product, "quantity": 1} for product in codes),
            {"delivery_type": "top_up", "system_product_id": topup, "player_id": "0077"},
        ]
        self._operator = make_operator()
        self.all: list[Buyers] = []
        self._rejected: list[Fulfilment] = []

    def buyers(self) -> Buyers:
        buyers = Buyers(self._keys, self._bodies, [self.installation], reads_abandoned=True)
        self.all.append(buyers)
        return buyers

    def reject_some(self, bought: Sequence[Bought], count: int = 3) -> None:
        """Rejects top-ups that no one has rejected; workers refund them."""
        known = {each.order_reference for each in self._rejected}
        topups = [
            each.data["reference"] for each in bought if each.body.get("delivery_type") == "top_up"
        ]
        for reference in [each for each in topups if each not in known][:count]:
            self._rejected.append(
                move_now(reference=reference, move=Move.REJECT, operator=self._operator)
            )

    def wait_for_refunds(self) -> None:
        for each in self._rejected:
            wait_until(lambda one=each: credits_of(one) == 1, "a refund", 90)  # type: ignore[misc]


@pytest.fixture(scope="module")
def installation(
    django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("hosts")
    with django_db_blocker.unblock(), running_installation(folder) as installation:
        yield installation


@pytest.fixture(autouse=True)
def closed_connections(installation: Installation) -> Iterator[None]:
    yield
    installation.http.close()


@pytest.fixture(scope="module")
def shop(installation: Installation) -> Shop:
    return Shop(installation)


def change_under_load(shop: Shop, name: str, change: Callable[[], None]) -> Buyers:
    """Merchants buy before, during and after the change. Prints what they met."""
    buyers = shop.buyers()
    with buyers.running(threads=THREADS):
        buyers.wait_for_sales(SALES)
        shop.reject_some(buyers.bought)
        change()
        buyers.wait_for_sales(SALES)
    connection.close()  # it may lead to a former leader
    shop.reject_some(buyers.bought)
    shop.wait_for_refunds()
    print(  # noqa: T201
        f"{name}: {len(buyers.bought)} purchases, no sale for {buyers.longest_pause:.1f} s,"
        f" slowest {max(each.seconds for each in buyers.bought):.1f} s,"
        f" most tries {1 + max(buyers.lost.values())}, {dict(buyers.seen)}",
        flush=True,
    )
    assert_no_purchase_failed_or_doubled(*shop.all)
    assert_books_balance()
    return buyers


def host_named(installation: Installation, name: str) -> Machine:
    machines = (
        *installation.webs,
        *installation.workers,
        *installation.queues,
        *installation.databases,
    )
    return next(each for each in machines if each.name == name)


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_lost(name: str, shop: Shop) -> None:
    machine = host_named(shop.installation, name)
    was_leader = name == shop.installation.cluster.leader.name
    was_master = machine in shop.installation.masters()

    def lose() -> None:
        machine.lose()
        if was_leader:
            others = [each for each in shop.installation.cluster.nodes if each.name != name]
            wait_until(lambda: any(each.is_primary for each in others), "another leader", 60)
        if was_master:
            wait_until(lambda: len(shop.installation.masters()) == 1, "another master", 60)

    try:
        buyers = change_under_load(shop, f"{name} lost", lose)
    finally:
        came_back = change_under_load(shop, f"{name} back", machine.come_back)

    assert max(came_back.lost.values()) < MOST_TRIES
    if machine in shop.installation.databases:  # or the synchronous standby was lost
        assert buyers.longest_pause < LONGEST_PAUSE
    else:
        assert max(buyers.lost.values()) < MOST_TRIES


def test_a_web_host_is_added_and_taken_away(shop: Shop) -> None:
    installation = shop.installation
    web, two = installation.make_web(3), installation.webs

    def add() -> None:
        web.start()
        wait_until(web.is_ready, "web3 works", 120)
        installation.serve_from([*two, web])
        wait_until(web.has_sold, "web3 sells", 60)

    def take_away() -> None:
        installation.serve_from(two)
        web.stop()

    added = change_under_load(shop, "web3 added", add)
    taken = change_under_load(shop, "web3 taken away", take_away)

    # A reload of HAProxy may close an idle connection while a request is on its way.
    assert max(added.lost.values()) < MOST_TRIES
    assert max(taken.lost.values()) < MOST_TRIES


def test_a_worker_host_is_added_and_taken_away(shop: Shop) -> None:
    worker = shop.installation.make_worker(3)

    def add() -> None:
        worker.start()
        wait_until(worker.is_ready, "worker3 works", 120)

    added = change_under_load(shop, "worker3 added", add)
    taken = change_under_load(shop, "worker3 taken away", worker.stop)

    assert max(added.lost.values()) == max(taken.lost.values()) == 0


def test_the_books_are_right_afterwards(shop: Shop) -> None:
    assert run("reconcile", "--decrypt")["findings"] == []
