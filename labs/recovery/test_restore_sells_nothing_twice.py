"""A database without the last purchases sells none of their codes again (docs/operate/backup.md).

An asynchronous replica that had not received these purchases is promoted. A restored backup lacks
them in the same way; test_pages_for_a_restore.py restores one. Two merchants lose purchases: one
pays for them after all, the other pays nothing.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from labs.installation.postgres import DurablePostgres
from labs.installation.replica import replica_of, wait_until_caught_up
from orders.models import LostPurchase
from tests.commands import refusal, run
from tests.database import django_uses
from tests.factories import Merchant, make_merchant, make_product, make_topup_product
from tests.live import API, LiveServer, as_service, live_server
from tests.operators.back_office import signed_in, url
from tests.quick_starts import run_quickly
from tests.tasks.running import wait_until
from wallets.models import Wallet
from wallets.services import adjust

STOCK = 12
GIFT = "We agreed that you keep the code."
Lost = tuple[Merchant, str, dict[str, Any], Any]  # who bought it, key, body and order


class Purchases:
    """Purchases of two merchants from the primary: before and after the moment of the restore."""

    def __init__(self, folder: Path) -> None:
        self.merchant = make_merchant(balance="100.00")
        self.other = make_merchant(balance="100.00")
        self.product = make_product(price="1.00", codes=STOCK)
        self.topup = make_topup_product(price="2.00")
        self.log = folder / "web.log"
        self.kept: list[Any] = []
        self.lost: list[Lost] = []

    def happen(self, primary: DurablePostgres, *, then: Callable[[], None]) -> None:
        """Sells, marks the moment of the restore with `then`, and sells more."""
        with live_server({**API, "DATABASE_URL": as_service(primary.url)}) as server:
            self.kept = [self._buy(server, self.merchant, "kept", self._codes(2))]
            then()
            for merchant, key, body in (
                (self.merchant, "one", self._codes(1)),
                (self.other, "one", self._codes(1)),
                (self.merchant, "three", self._codes(3)),
                (self.merchant, "top-up", self._topup()),
            ):
                order = self._buy(server, merchant, key, body)
                self.lost.append((merchant, key, body, order))
            server.stop()
            self.log.write_text(server.log)

    def _codes(self, quantity: int) -> dict[str, Any]:
        return {"product_id": self.product.pk, "quantity": quantity}

    def _topup(self) -> dict[str, Any]:
        return {
            "delivery_type": "top_up",
            "system_product_id": self.topup.pk,
            "quantity": 1,
            "player_id": "77",
        }

    @staticmethod
    def _buy(server: LiveServer, merchant: Merchant, key: str, body: dict[str, Any]) -> Any:
        buyer = copy(merchant)
        buyer.http = server.http
        answer = buyer.buy(key, **body)
        assert answer.status_code == 201, answer.content
        return answer.json()["data"]

    @property
    def codes_handed_over(self) -> set[str]:
        orders = [*self.kept, *(order for *_, order in self.lost)]
        return {code["code"] for order in orders for code in order["codes"]}


@contextmanager
def failed_over(primary: DurablePostgres, purchases: Purchases, folder: Path) -> Iterator[str]:
    """Promotes a replica that was cut off before the last purchases."""
    with replica_of(primary.url, folder) as replica:

        def cut_off() -> None:
            wait_until_caught_up(primary.url, replica)
            assert_only_reads(purchases, as_service(replica))
            with psycopg.connect(replica, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
                connection.execute("SELECT pg_reload_conf()")
            wait_until(lambda: not replicas(primary), "the replica is cut off")

        purchases.happen(primary, then=cut_off)
        with psycopg.connect(replica, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        yield promoted(replica)


def assert_only_reads(purchases: Purchases, replica: str) -> None:
    """`reconcile` runs on a replica. A web server there reads; a purchase is a server_error."""
    environment = {**os.environ, "DATABASE_URL": replica}
    checked = run_quickly(["manage.py", "reconcile"], environment=environment)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["findings"] == []
    with live_server({**API, "DATABASE_URL": replica}) as server:
        mistaken = copy(purchases.merchant)
        mistaken.http = server.http
        assert mistaken.get("/balance").json()["data"]["balance"] == 98
        refused = mistaken.buy("one", product_id=purchases.product.pk, quantity=1)
    assert refused.json()["error"]["code"] == "server_error"


@pytest.fixture
def restored(durable: DurablePostgres, tmp_path: Path) -> Iterator[Purchases]:
    """A server without the last purchases; Django uses it."""
    tmp_path.chmod(0o755)
    purchases = Purchases(tmp_path)
    with failed_over(durable, purchases, tmp_path) as url, django_uses(url):
        assert (
            purchases.merchant.get(f"/orders/{purchases.kept[0]['reference']}").status_code == 200
        )
        for merchant, *_, order in purchases.lost:
            assert merchant.get(f"/orders/{order['reference']}").status_code == 404
        yield purchases


def test_no_code_is_sold_again(restored: Purchases) -> None:
    purchases, since = restored, "2026-01-01T00:00Z"

    # Control: without the hold, a code that a merchant has is sold again.
    again = purchases.merchant.buy("control", product_id=purchases.product.pk, quantity=1)
    assert again.json()["data"]["codes"][0]["code"] in purchases.codes_handed_over

    # Without the last part of the log, the lost lines are named and nothing is held.
    text = purchases.log.read_text()
    purchases.log.write_text(text[: text.index(purchases.lost[-1][-1]["reference"])])
    refused = refusal("hold_codes", "--log", purchases.log, "--since", since, "--skip-damaged")
    assert "Otherwise, give the file that has the rest." in refused
    purchases.log.write_text(text)

    held = run("hold_codes", "--log", purchases.log, "--since", since)

    assert held["codes_held"] == 5 - 1
    assert held["sold_again_with"] == [again.json()["data"]["reference"]]
    assert [(each["reference"], each["unpaid"]) for each in held["purchases"]] == [
        (order["reference"], order["total_price"]) for *_, order in purchases.lost
    ]
    for merchant, key, body, order in purchases.lost:  # a retry never buys again
        retried = merchant.buy(key, **body)
        assert retried.status_code == 409
        assert retried.json()["error"]["code"] == "request_abandoned"
        assert retried.json()["error"]["reference"] == order["reference"]
    sold = sell_out(purchases)
    assert len(sold) == STOCK - 2 - 5
    assert not sold & purchases.codes_handed_over
    settle_with_both(purchases, purchases.lost)
    assert balance(purchases.merchant) == 100 - 2 - 6 - 1 - len(sold)
    assert balance(purchases.other) == 100
    assert run("reconcile")["findings"] == []

    repeated = run("hold_codes", "--log", purchases.log, "--since", since)
    assert (repeated["hold"], repeated["codes_held"], repeated["purchases"]) == (None, 0, [])


def test_the_end_of_a_log_is_lost_for_good(restored: Purchases, tmp_path: Path) -> None:
    """The advice of `hold_codes` and of docs/operate/restore.md, when nobody finds the lines."""
    purchases, since = restored, "2026-01-01T00:00Z"
    known, unknown = purchases.lost[:2], [order for *_, order in purchases.lost[2:]]
    text = purchases.log.read_text()
    purchases.log.write_text(text[: text.index(unknown[0]["reference"])])
    logs = ("--log", purchases.log, "--since", since, "--skip-damaged")
    assert "If they cannot be found" in refusal("hold_codes", *logs)

    held = run("hold_codes", *logs, "--skip-missing")
    assert [each["reference"] for each in held["purchases"]] == [
        order["reference"] for *_, order in known
    ]
    everything = run("hold_codes", "--all")

    assert held["codes_held"] == 2
    assert everything["codes_held"] >= STOCK - 2 - 2
    assert not sell_out(purchases)
    codes = tmp_path / "codes.csv"
    codes.write_text("code\nNEW-1\nNEW-2\n")
    run("import_codes", str(purchases.product.pk), codes)
    assert sell_out(purchases) == {"NEW-1", "NEW-2"}
    settle_with_both(purchases, known)
    for order in unknown:  # the merchant names them
        adjust(
            account=purchases.merchant.account,
            amount=-Decimal(order["total_price"]),
            actor="shell:anna",
            booking_reference=order["reference"],
            note="A restore lost the order.",
        )
    assert balance(purchases.merchant) == 100 - 2 - 6 - 2
    assert balance(purchases.other) == 100
    assert run("reconcile")["findings"] == []


def settle_with_both(purchases: Purchases, found: list[Lost]) -> None:
    """Debits the one merchant. Tells the other, and debits nothing. The page shows both."""
    debited, gifts = (
        {order["reference"] for merchant, *_, order in found if merchant is each}
        for each in (purchases.merchant, purchases.other)
    )
    account = purchases.other.account.pk
    notice = run("lost_purchases", "notice", account)["notice"]
    assert named(notice, found) == gifts
    settle = ("lost_purchases", "settle", "--note")
    assert run(*settle, GIFT, "--account", account, "--no-debit")["settled"] == len(gifts)
    assert run(*settle, "x", "--all", "--debit")["settled"] == len(debited)

    browser = signed_in()
    for state, settled in (("debited", debited), ("not-debited", gifts)):
        page = browser.get(f"/admin/orders/lostpurchase/?state={state}").content.decode()
        assert named(page, found) == settled
    (gift,) = LostPurchase.objects.filter(reference__in=gifts)
    assert GIFT in browser.get(url(gift)).content.decode()


def named(text: str, found: list[Lost]) -> set[str]:
    """The references of lost purchases in a text."""
    return {order["reference"] for *_, order in found if order["reference"] in text}


def balance(merchant: Merchant) -> Decimal:
    return Wallet.objects.get(account=merchant.account).balance


def sell_out(purchases: Purchases) -> set[str]:
    """Buys every code in stock, one by one; returns them."""
    codes: set[str] = set()
    for number in range(STOCK + 1):
        answer = purchases.merchant.buy(
            f"rest-{number}", product_id=purchases.product.pk, quantity=1
        )
        if answer.status_code != 201:
            assert answer.json()["error"]["reason"] == "insufficient_stock"
            return codes
        codes.add(answer.json()["data"]["codes"][0]["code"])
    raise AssertionError("more codes than the shelf had")


def replicas(server: DurablePostgres) -> int:
    with psycopg.connect(server.url) as connection:
        return len(connection.execute("SELECT FROM pg_stat_replication").fetchall())


def promoted(url: str) -> str:
    """The URL, once its server accepts writes."""

    def writable() -> bool:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        return bool(row and not row[0])

    wait_until(writable, "the server is promoted")
    return url
