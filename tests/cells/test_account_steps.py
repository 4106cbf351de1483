"""The steps of a move: what they refuse, and what happens when they are run again
(operators/account_transfers/)."""

from pathlib import Path

import pytest

from accounts.models import Account
from catalogue.code_import import IMPORT_LOCK
from operators.account_transfers import sending
from operators.account_transfers.models import AccountTransfer
from tests.cells.accounts import asking, assert_healthy, leave, move, run_leaving
from tests.cells.two_cells import PRODUCT, TOPUP, Cell, backup
from tests.commands import refusal, run
from tests.concurrency.racing import (
    execute,
    holding_locks,
    in_background,
    scalar,
    wait_for_waiting,
)
from tests.factories import (
    Merchant,
    buy_topup,
    make_merchant,
    make_operator,
    move_now,
)
from topups.models import FulfilmentEvent, TopUpProduct
from topups.refunds import sweep_refunds
from topups.transitions import Move
from wallets.models import LedgerEntry, Wallet

pytestmark = pytest.mark.django_db(transaction=True)


def test_open_topups_keep_an_account(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, _ = cells
    with a.entered():
        reference = buy_topup(merchant, TopUpProduct.objects.get(pk=TOPUP))
        for options in ([], ["--trial"]):
            words = ["--to", "b", "--reference", "m1", "--file", tmp_path / "m1", *options]
            assert reference in refusal("send_account", merchant.client.account_id, *words)
        operator = make_operator()
        for step in (Move.CLAIM, Move.REJECT):
            move_now(reference=reference, move=step, operator=operator)
        assert reference in refusal("send_account", merchant.client.account_id, *words)
        assert not AccountTransfer.objects.exists()
        sweep_refunds()
        assert merchant.buy(product_id=PRODUCT, quantity=1).status_code == 201
    leave(a, merchant, tmp_path / "m1")


def test_each_step_may_be_run_again(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    first, second = tmp_path / "first", tmp_path / "second"
    assert leave(a, merchant, first) == leave(a, merchant, second)
    assert first.read_bytes() == second.read_bytes()
    received = b.run("receive_account", first)
    for file in (first, second):
        assert b.run("receive_account", file) == {**received, "received_before": True}
    with asking(b, merchant):
        merchant.buy("new", product_id=PRODUCT, quantity=1)
    assert b.run("receive_account", first)["account"] == received["account"]
    assert_healthy(a, b)


def test_a_move_has_one_destination_and_one_account(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    move(cells, merchant, tmp_path / "m1")
    with a.entered():
        account, other = merchant.client.account_id, make_merchant().client.account_id
        for words, message in (
            ([account, "--to", "c", "--reference", "m1"], "left for cell b before"),
            ([account, "--to", "b", "--reference", "m2"], "left for cell b before"),
            ([other, "--to", "b", "--reference", "m1"], "another transfer"),
            ([10**9, "--to", "b", "--reference", "m3"], "no account"),
        ):
            assert message in refusal("send_account", *words, "--file", tmp_path / "x")
        assert "no wallet" in refusal(
            *("send_account", run("create_account", "X", "--no-wallet")["account_id"]),
            *("--to", "b", "--reference", "m4", "--file", tmp_path / "x"),
        )
        assert Wallet.objects.get(pk=other).closed_at is None
    a.run("send_account", other, "--to", "b", "--reference", "m5", "--file", tmp_path / "m5")
    with b.entered():
        arrived = AccountTransfer.objects.get().account_id
        own = Account.objects.exclude(pk=arrived).get().pk
        run("send_account", own, "--to", "c", "--reference", "m5", "--file", tmp_path / "x")
        for trial in (["--trial"], []):
            words = ["--to", "a", "--reference", "m1", "--file", tmp_path / "x", *trial]
            assert "cannot return" in refusal("send_account", arrived, *words)
        assert Wallet.objects.get(pk=arrived).closed_at is None
    # Another sender chose the reference m5, too.
    assert b.run("receive_account", tmp_path / "m5")["received_before"] is False
    assert b.run("receive_account", tmp_path / "m5")["received_before"] is True


def test_an_account_with_codes_of_a_cell_does_not_move_there(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """That cell could not receive it: it refuses codes that it has had."""
    a, b = cells
    words = ["--to", "a", "--reference", "s", "--file", tmp_path / "s"]
    b.run("send_stock", PRODUCT, 1, *words)
    a.run("receive_stock", tmp_path / "s")
    with a.entered():
        # The merchant bought all codes before that, so it may go; the other one may not.
        other = make_merchant()
        bought = other.buy(product_id=PRODUCT, quantity=1).json()["data"]["reference"]
        for trial in (["--trial"], []):
            words = ["--to", "b", "--reference", "m2", "--file", tmp_path / "m2", *trial]
            assert bought in refusal("send_account", other.client.account_id, *words)
        assert other.buy(product_id=PRODUCT, quantity=1).status_code == 201
        run("send_account", other.client.account_id, "--to", "c", *words[2:])
    move(cells, merchant, tmp_path / "m1")
    for cell in cells:
        assert cell.run("reconcile", "--decrypt")["findings"] == []


def test_an_arrival_keeps_its_encryption_key(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """`reseal` retires a key under the lock of imports."""
    a, b = cells
    leave(a, merchant, tmp_path / "m1")
    with (
        b.entered(),
        holding_locks(f"SELECT pg_advisory_xact_lock({IMPORT_LOCK})") as retiring,
        in_background(lambda: run("receive_account", tmp_path / "m1")) as received,
    ):
        wait_for_waiting(1)
        retiring.execute("DELETE FROM config_encryptionkey")
        retiring.execute(
            "INSERT INTO config_encryptionkey (key_id, wrapped) VALUES (2, %s)",
            [scalar("SELECT wrapped FROM config_encryptionkey")],
        )
        retiring.commit()
        received.result()
        assert scalar("SELECT sealing_since IS NOT NULL FROM config_encryptionkey WHERE key_id = 2")


def test_people_keep_their_names(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """Also those who are called like a client that the account does not have."""
    a, b = cells
    names = {"client:anna", "client:999999999"}
    with a.entered():
        for name in names:
            operator = make_operator(username=name)
            reference = buy_topup(merchant, TopUpProduct.objects.get(pk=TOPUP))
            for step in (Move.CLAIM, Move.COMPLETE):
                move_now(reference=reference, move=step, operator=operator)
    move(cells, merchant, tmp_path / "m1")
    with b.entered():
        assert names < set(FulfilmentEvent.objects.values_list("actor", flat=True))
    assert_healthy(a, b)


def test_a_trial_changes_nothing(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    a, b = cells
    leave(a, merchant, tmp_path / "trial", "--trial")
    answer = b.run("receive_account", tmp_path / "trial")
    assert answer == {"from": "a", "reference": "m1", "trial": True}
    with b.entered():
        assert (Account.objects.count(), AccountTransfer.objects.count()) == (1, 0)
    with asking(a, merchant):
        assert merchant.buy("new", product_id=PRODUCT, quantity=1).status_code == 201
        assert not AccountTransfer.objects.exists()
    move(cells, merchant, tmp_path / "m1")
    assert_healthy(a, b)


def test_an_account_that_does_not_fit_is_not_added(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """After the other cell is corrected, the same file is received."""
    a, b = cells
    leave(a, merchant, tmp_path / "m1")
    prefix = merchant.key.split("_")[1]
    another_product = "UPDATE catalogue_shelf SET product_id = -product_id WHERE variation_id IS "
    obstacles = {
        "no product 9001": (another_product + "NULL", another_product + "NULL"),
        "no variation 9001 of product 9001": (another_product + "NOT NULL",) * 2,
        "no top-up product 9101": ("UPDATE topups_topupproduct SET id = -id",) * 2,
        "accounts_apikey_prefix": (
            f"UPDATE accounts_apikey SET prefix = '{prefix}'",
            "UPDATE accounts_apikey SET prefix = 'x'",
        ),
        "catalogue_vouchercode_digest": (
            "UPDATE catalogue_shelf SET available_stock = available_stock",
            "DELETE FROM catalogue_vouchercode WHERE order_id IS NULL;"
            " UPDATE catalogue_shelf SET available_stock = 0",
        ),
    }
    for message, (obstruct, clear) in obstacles.items():
        if "digest" in message:
            b.fill(["a-0"])
        with b.entered():
            with_triggers_off(obstruct)
            assert message in refusal("receive_account", tmp_path / "m1")
            assert Account.objects.count() == 1
            with_triggers_off(clear)
    b.run("receive_account", tmp_path / "m1")
    assert_healthy(b)


def test_a_booking_reference_that_the_cell_has_gets_the_origin_in_front(
    cells: tuple[Cell, Cell], tmp_path: Path
) -> None:
    """Both cells created an account of this name with a balance, and use the same references."""
    a, b = cells
    long = "x" * 100
    with a.entered():
        account = run("create_account", "Acme", "--balance", "50")["account_id"]
        for reference in ("INV-77", "a:INV-77", long):
            run("deposit", account, "1", "--reference", reference)
        opening = LedgerEntry.objects.filter(wallet=account).earliest("pk").booking_reference
    with b.entered():
        other = run("create_account", "Acme", "--balance", "70")["account_id"]
        for reference in ("INV-77", long):
            run("deposit", other, "2", "--reference", reference)
    for trial in (["--trial"], []):
        words = ["--to", "b", "--reference", "m1", "--file", tmp_path / "m1", *trial]
        a.run("send_account", account, *words)
        arrived = b.run("receive_account", tmp_path / "m1")

    with b.entered():
        entries = LedgerEntry.objects.filter(wallet=arrived["account"]).order_by("pk")
        references = [str(entry.booking_reference) for entry in entries]
        assert references[:3] == [f"a:{opening}", "a:a:INV-77", "a:INV-77"]
        assert references[3][:2] == "a:"
        assert len(references[3]) <= 100
        assert Wallet.objects.get(pk=arrived["account"]).balance == 53
        # A bank's reference still pays one deposit.
        assert "used before" in refusal("deposit", arrived["account"], "1", "--reference", "INV-77")
    for cell in (a, b):
        assert cell.run("reconcile", "--decrypt")["findings"] == []
        assert cell.run("verify_ledger")["ok"] is True


def test_another_file_with_the_reference_is_not_taken_for_the_first(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path
) -> None:
    """The old cell was restored, and sends something else under the same reference."""
    a, b = cells
    with a.entered():
        other = make_merchant().client.account_id
    with backup(a) as restored:
        leave(restored, merchant, tmp_path / "fewer")
    with backup(a) as restored:
        with asking(restored, merchant):
            merchant.buy("not there", product_id=PRODUCT, quantity=1)
        leave(restored, merchant, tmp_path / "more")
    with asking(a, merchant):
        merchant.buy("last", product_id=PRODUCT, quantity=1)
    with backup(a) as restored:
        words = ["--to", "b", "--reference", "m1", "--file", tmp_path / "other"]
        restored.run("send_account", other, *words)
    move(cells, merchant, tmp_path / "m1")

    whole = (tmp_path / "m1").read_bytes()
    (tmp_path / "cut").write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    with b.entered():
        for file, message in {
            "more": "Another file with the reference m1",
            "other": "Another file with the reference m1",
            "cut": "is incomplete",
        }.items():
            assert message in refusal("receive_account", tmp_path / file), file
        assert run("receive_account", tmp_path / "fewer")["received_before"] is True
    assert_healthy(a, b)


def test_a_departure_is_on_the_disk_first(
    cells: tuple[Cell, Cell], merchant: Merchant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash must not open the wallet again when the other cell has the account."""
    seen = []

    def recording(**entry: object) -> None:
        seen.append(scalar("SHOW synchronous_commit"))

    monkeypatch.setattr(sending, "record_action", recording)
    with cells[0].entered():
        execute("SET synchronous_commit = off")
        run_leaving(merchant, tmp_path / "m1")
        assert (seen, scalar("SHOW synchronous_commit")) == (["on"], "off")
        execute("RESET synchronous_commit")


def with_triggers_off(statement: str) -> None:
    execute("SET session_replication_role = replica")
    execute(statement)
    execute("SET session_replication_role = origin")
