"""A merchant who moves to another cell keeps everything that a program can ask for, and buys in one
cell at a time (operators/account_transfers/)."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

from accounts.keys import issue_key
from accounts.models import Account
from audit.models import AuditEntry
from operators.account_transfers import sending
from orders.models import Order
from tests.cells.accounts import asking, assert_healthy, leave, move, run_leaving
from tests.cells.two_cells import PRODUCT, TOPUP, Cell
from tests.commands import refusal, run
from tests.concurrency.racing import (
    execute,
    holding_wallet,
    in_background,
    scalar,
    wait_for_waiting,
)
from tests.factories import Merchant
from tests.tasks.running import wait_until
from wallets.models import LedgerEntry, Wallet

pytestmark = pytest.mark.django_db(transaction=True)
Answers = dict[str, Any]


def everything(merchant: Merchant) -> Answers:
    """What the program can read."""
    orders = merchant.get("/orders").json()["data"]
    paths = ["/balance", "/orders?page=1&per_page=2", "/orders?page=2&per_page=2"]
    paths += [f"/orders/{order['reference']}" for order in orders["items"]]
    name = merchant.get("/ping").json()["data"]
    return {
        "client": (name["client"], name["rate_limit_per_minute"]),
        "references": [
            product["merchant_reference"]
            for product in merchant.get("/products").json()["data"]["items"]
        ],
        **{path: merchant.get(path).json() for path in paths},
    }


def test_a_program_reads_in_its_new_cell_what_it_read_before(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    with asking(a, merchant):
        before = everything(merchant)
        entries = list(LedgerEntry.objects.order_by("pk").values_list("kind", "amount", "note"))
    prefix = merchant.key.split("_")[1]

    received = move(cells, merchant, tmp_path / "m1")

    with a.entered():
        left = AuditEntry.objects.get(object_type="accounts.account", action="account_changed")
        assert (left.actor_name[:6], left.note) == ("shell:", "Left for cell b: m1")
    assert f"{prefix} b" in received["moved_map"]
    assert len(received["moved_map"]) == 2
    with asking(b, merchant):
        assert everything(merchant) == before
        there = LedgerEntry.objects.filter(wallet=received["account"]).order_by("pk")
        assert list(there.values_list("kind", "amount", "note")) == entries
        clients = Account.objects.get(pk=received["account"]).clients
        assert clients.count() == 2
        assert issue_key(client=clients.earliest("pk"), actor=None).startswith("vk_b_")
    assert before["/orders?page=1&per_page=2"]["data"]["pagination"]["total"] == 5
    assert_healthy(a, b)
    assert b"a-0" not in (tmp_path / "m1").read_bytes()


def test_a_key_that_bought_is_replayed_byte_for_byte(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    body = {"product_id": PRODUCT, "quantity": 3}
    with asking(a, merchant):
        first = merchant.buy("plain", **body)
    move(cells, merchant, tmp_path / "m1")

    for cell in (a, b):  # also in the old one, until the proxy has the new map
        with asking(cell, merchant):
            again = merchant.buy("plain", **body)
            assert (again.content, again["Idempotent-Replay"]) == (first.content, "true")
    with asking(b, merchant):
        other = merchant.buy("plain", product_id=PRODUCT, quantity=1)
        assert other.json()["error"]["code"] == "idempotency_key_reused"
        new = merchant.buy("new", merchant_reference="my-card", quantity=1)
        assert new.status_code == 201
        assert new.json()["data"]["codes"][0]["code"].startswith("b-")
    assert_healthy(a, b)


def test_the_old_cell_sells_nothing_more(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, _ = cells
    leave(a, merchant, tmp_path / "m1")
    with asking(a, merchant):
        for body in (
            {"product_id": PRODUCT, "quantity": 1},
            {"delivery_type": "top_up", "system_product_id": TOPUP, "player_id": "1"},
        ):
            key = json.dumps(body)
            refused, again = merchant.buy(key, **body), merchant.buy(key, **body)
            assert refused.status_code == 500
            assert refused.json()["error"]["code"] == "server_error"
            assert "same `Idempotency-Key`" in refused.json()["error"]["message"]
            assert again.json()["error"]["code"] == "request_in_progress"
        account, order = merchant.client.account_id, Order.objects.earliest("pk").reference
        assert "another cell" in refusal("deposit", account, "5", "--reference", "d")
        assert "another cell" in refusal("payout", account, "5", "--reference", "p")
        assert "another cell" in refusal(
            "credit_order", order, "1", "--reference", "x", "--note", "x"
        )
        for change in (
            "UPDATE wallets_wallet SET closed_at = NULL",
            "UPDATE operators_accounttransfer SET cell = 'c'",
            "DELETE FROM operators_accounttransfer",
            "TRUNCATE operators_accounttransfer",
        ):
            with pytest.raises(DatabaseError):
                execute(change)
    assert_healthy(a)


def test_a_key_in_progress_is_bought_once(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """The first attempt hangs in the old cell while the retry buys in the new one."""
    a, b = cells
    with (
        asking(a, merchant),
        holding_wallet(merchant) as lock,
        in_background(lambda: merchant.buy("k", product_id=PRODUCT, quantity=1)) as first,
    ):
        wait_for_waiting(1)
        lock.execute("UPDATE wallets_wallet SET closed_at = now()")
        lock.execute(
            "INSERT INTO operators_accounttransfer (reference, account_id, sent, cell)"
            " VALUES ('m1', %s, true, 'b')",
            [merchant.client.account_id],
        )
        lock.commit()
        assert first.result().status_code == 500
    move(cells, merchant, tmp_path / "m1")

    with asking(b, merchant):
        assert merchant.buy("k", product_id=PRODUCT, quantity=1).status_code == 201
    with asking(a, merchant):
        code = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["error"]["code"]
        assert code == "request_in_progress"
        assert Order.objects.count() == 6
    assert_healthy(a, b)


def test_a_purchase_that_has_the_wallet_is_moved(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    with (
        a.entered(),
        holding_wallet(merchant) as lock,
        in_background(lambda: merchant.buy("k", product_id=PRODUCT, quantity=1)) as bought,
    ):
        wait_for_waiting(1)
        with in_background(lambda: run_leaving(merchant, tmp_path / "m1")):
            wait_for_waiting(2)
            lock.rollback()
    first = bought.result()
    assert first.status_code == 201
    b.run("receive_account", tmp_path / "m1")

    with asking(b, merchant):
        again = merchant.buy("k", product_id=PRODUCT, quantity=1)
    assert (again.status_code, again.content) == (201, first.content)
    assert_healthy(a, b)


def test_a_purchase_whose_response_was_lost_is_abandoned_there_too(
    cells: tuple[Cell, Cell],
    merchant: Merchant,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = cells
    monkeypatch.setattr(sending, "WAIT", sending.WAIT / 100)
    with a.entered():
        reference = scalar("SELECT order_reference FROM idempotency_idempotencyrecord ORDER BY id")
        execute(
            "UPDATE idempotency_idempotencyrecord SET response = NULL, started_at = 'epoch'"
            " WHERE order_reference = %s",
            reference,
        )
    move(cells, merchant, tmp_path / "m1")

    with asking(b, merchant):
        error = merchant.buy("plain", product_id=PRODUCT, quantity=3).json()["error"]
        assert (error["code"], error["reference"]) == ("request_abandoned", reference)
        assert merchant.get(f"/orders/{reference}").status_code == 200


def test_the_file_waits_for_a_response_that_is_being_stored(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    record = "UPDATE idempotency_idempotencyrecord SET response = %s, bought_at = clock_timestamp()"
    with asking(a, merchant):
        bought = merchant.buy("late", product_id=PRODUCT, quantity=1)
        stored = scalar("SELECT response FROM idempotency_idempotencyrecord WHERE key = 'late'")
        execute(f"{record} WHERE key = 'late'", None)
        with in_background(lambda: run_leaving(merchant, tmp_path / "m1")) as left:
            wait_until(lambda: Wallet.objects.get().closed_at, "the wallet is closed")
            with pytest.raises(TimeoutError):
                left.result(timeout=1)
            execute(f"{record} WHERE key = 'late'", bytes(stored))
    b.run("receive_account", tmp_path / "m1")

    with asking(b, merchant):
        assert merchant.buy("late", product_id=PRODUCT, quantity=1).content == bought.content


def test_a_moved_order_can_be_credited(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    account = move(cells, merchant, tmp_path / "m1")["account"]
    with b.entered():
        reference = Order.objects.filter(client__account=account).earliest("pk").reference
        before = Wallet.objects.get(pk=account).balance
        words = ["--reference", "x", "--note", "x"]
        assert "more than it cost" in refusal("credit_order", reference, "2.01", *words)
        run("credit_order", reference, "2.00", *words)
        assert Wallet.objects.get(pk=account).balance == before + 2
    assert_healthy(a, b)


def test_control_without_the_guard_one_key_buys_in_both_cells(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """A request that reaches the old cell late would be sold a second time."""
    a, b = cells
    sold = {}
    move(cells, merchant, tmp_path / "m1")
    with asking(b, merchant):
        sold["b"] = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["data"]
    with asking(a, merchant):
        execute("DROP TRIGGER wallets_closed_wallet_stays ON wallets_wallet")
        try:
            sold["a"] = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["data"]
        finally:
            execute(
                "CREATE TRIGGER wallets_closed_wallet_stays BEFORE UPDATE ON wallets_wallet"
                " FOR EACH ROW WHEN (OLD.closed_at IS NOT NULL)"
                " EXECUTE FUNCTION wallets_refuse_closed()"
            )
    assert sold["a"]["reference"] != sold["b"]["reference"]
    assert sold["a"]["codes"] != sold["b"]["codes"]
