"""Ways to lose the leader of the database while customers buy, and what must hold afterwards."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from labs.failover.watch import watching
from labs.installation.buyers import (
    WINDOW,
    Bought,
    Buyers,
    assert_no_purchase_failed_or_doubled,
)
from labs.installation.cluster import Cluster, Node
from orders.models import Order
from tests.commands import run
from tests.concurrency.books import assert_books_balance
from tests.live import LiveServer, as_service, live_server, with_settings
from tests.tasks.running import wait_until

BUYERS = 4
SALES = 30  # before and after each failure
ORDERS = "SELECT count(*) FROM orders_order"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@dataclass
class Drill:
    """The findings of one drill."""

    name: str
    customers: "Customers"
    former: str  # the leader before
    leader: str = ""  # the leader after
    pause: float = 0.0  # seconds between two sales

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.former} to {self.leader}, no sale for {self.pause:.1f} s,"
            f" {len(self.customers.bought)} sold, requests {dict(self.customers.seen)}"
        )


class Customers(Buyers):
    """Customers who buy, and read each order that they bought."""

    def _buy(self, api_key: str, body: dict[str, Any], key: str = "") -> Bought:
        one = super()._buy(api_key, body, key)
        self.read(one.data["reference"], api_key=api_key)
        return one


@contextmanager
def running_service(cluster: Cluster) -> Iterator[LiveServer]:
    """The web server, which reaches the database through HAProxy."""
    environment = {
        "DATABASE_URL": as_service(cluster.url),
        **with_settings(IDEMPOTENCY_IN_PROGRESS_SECONDS=WINDOW),
    }
    with live_server(environment) as server:
        yield server


@contextmanager
def drill(
    cluster: Cluster, server: LiveServer, name: str, *, steps_down: bool = True
) -> Iterator[Drill]:
    """Customers buy before, during and after the block, in which the leader is lost.

    Raises AssertionError if a purchase was lost or doubled, if the service read from a former
    leader. Also if another host was promoted before the former leader stopped to be a primary,
    unless `steps_down` is false.
    """
    wait_until(cluster.is_complete, "the cluster is complete", 90)
    earlier = list(Order.objects.values_list("reference", flat=True))
    customers = Customers.with_shop(server, codes=1500)
    found = Drill(name, customers, former=cluster.leader.name)
    with watching(cluster.nodes, cluster.password) as watch, customers.running(BUYERS):
        customers.wait_for_sales(SALES)
        yield found
        customers.wait_for_sales(SALES)
    connection.close()  # it led to the former leader
    found.pause = customers.longest_pause
    found.leader = cluster.leader.name
    print(found, flush=True)  # noqa: T201

    assert not (steps_down and watch.two_primaries())
    reads = {each for each in customers.seen if each.startswith("read")}
    assert reads <= {"read 200", "read lost"}  # a 404 would come from a server without the order
    assert_no_purchase_failed_or_doubled(customers, earlier=earlier)
    assert_books_balance()
    assert run("reconcile")["findings"] == []
    assert customers.references <= logged_orders(server), "an order has no line in the purchase log"


def logged_orders(server: LiveServer) -> set[str]:
    """The orders that the purchase log names."""
    lines = (line for line in server.log.splitlines() if '"order_created"' in line)
    return {json.loads(line)["reference"] for line in lines}


def kill_leader(cluster: Cluster, server: LiveServer) -> Drill:
    """kill -9 of Patroni and PostgreSQL. The former leader returns as a standby."""
    with drill(cluster, server, "killed") as found:
        former = cluster.leader
        former.kill_database()
        wait_for_new_leader(cluster, former)
        former.start_patroni()
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


def cut_off_leader(cluster: Cluster, server: LiveServer) -> Drill:
    """The leader's host loses the network, and nothing on it is killed. It returns as a standby."""
    with drill(cluster, server, "cut off") as found:
        former = cluster.leader
        with former.host.cut_off():
            wait_for_new_leader(cluster, former)
            assert not former.is_primary
            found.customers.wait_for_sales(SALES)
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


def switch_over(cluster: Cluster, server: LiveServer) -> Drill:
    """The planned move of the lead to the synchronous standby."""
    with drill(cluster, server, "switched over") as found:
        former = cluster.leader
        (candidate,) = (name for name, kind in former.streaming.items() if kind == "sync")
        former.patronictl(
            "switchover", "--master", former.name, "--candidate", candidate, "--force"
        )
        wait_for_new_leader(cluster, former)
    assert found.leader == candidate
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


def freeze_standbys(cluster: Cluster, server: LiveServer) -> Drill:
    """Without a standby that confirms it, a purchase waits, and nobody sees its order."""
    with drill(cluster, server, "standbys frozen") as found, ExitStack() as frozen:
        leader = cluster.leader
        for standby in cluster.nodes:
            if standby is not leader:
                frozen.enter_context(standby.host.frozen("postgres"))
        wait_until(lambda: leader.query(WAITING) not in (None, "0"), "a purchase waits", 30)
        time.sleep(0.5)  # the last responses arrive
        sold = len(found.customers.bought)
        orders = leader.query(ORDERS, "voucher")
        time.sleep(1)
        assert len(found.customers.bought) == sold
        assert leader.query(ORDERS, "voucher") == orders
    assert found.leader == found.former
    return found


def kill_patroni(cluster: Cluster, server: LiveServer) -> Drill:
    """kill -9 of Patroni alone. PostgreSQL goes on as a primary, but the service leaves it."""
    with drill(cluster, server, "only Patroni killed", steps_down=False) as found:
        former = cluster.leader
        former.host.kill("patroni")
        wait_for_new_leader(cluster, former)
        assert former.is_primary
    former.start_patroni()
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


def kill_standby(cluster: Cluster, server: LiveServer) -> Drill:
    """kill -9 of the synchronous standby. The leader goes on with the other one."""
    with drill(cluster, server, "standby killed") as found:
        followers = cluster.leader.streaming
        (standby,) = (node for node in cluster.nodes if followers.get(node.name) == "sync")
        standby.kill_database()
    standby.start_patroni()
    assert found.leader == found.former
    wait_until(cluster.is_complete, "the standby follows again", 90)
    return found


def kill_postgresql(cluster: Cluster, server: LiveServer) -> Drill:
    """kill -9 of PostgreSQL alone. Patroni hands the lead to the standby."""
    with drill(cluster, server, "only PostgreSQL killed") as found:
        former = cluster.leader
        former.host.kill("postgres")
        wait_for_new_leader(cluster, former)
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


def freeze_leader(cluster: Cluster, server: LiveServer) -> Drill:
    """The leader's host stands still, as a paused virtual machine does, and goes on later."""
    with drill(cluster, server, "frozen", steps_down=False) as found:
        former = cluster.leader
        with former.host.frozen("postgres", "patroni", "etcd"):
            found.customers.wait_for_sales(SALES)
        wait_until(lambda: not former.is_primary, "the former leader steps down")
    wait_until(cluster.is_complete, "the former leader follows the new one", 90)
    return found


QUICK_DRILLS: list[Callable[[Cluster, LiveServer], Drill]] = [
    kill_leader,
    cut_off_leader,
    switch_over,
    freeze_standbys,
]
DRILLS = [*QUICK_DRILLS, kill_patroni, kill_postgresql, kill_standby, freeze_leader]


def wait_for_new_leader(cluster: Cluster, former: Node) -> None:
    others = [node for node in cluster.nodes if node is not former]
    wait_until(lambda: any(node.is_primary for node in others), "another host leads", 60)
