"""A cell is restored to a moment before a transfer. Still each code is sold once, and each key buys
once (docs/operate/cells.md)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from catalogue import sent_codes
from catalogue.codes import open_code
from catalogue.models import StockTransfer, VoucherCode
from operators.account_transfers import sending
from orders import purchase_log
from orders.models import LostPurchase, Order
from tests.cells.accounts import asking, assert_healthy, leave, move
from tests.cells.two_cells import PRODUCT, Cell, backup
from tests.commands import refusal
from tests.factories import Merchant, make_merchant
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)

Log = Callable[[], list[object]]


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Log]:
    """Returns the options of `hold_codes` for what was logged since the last call."""
    purchase_log._log.cache_clear()

    def written() -> list[object]:
        file = tmp_path / "collected.log"
        file.write_text(capsys.readouterr().err)
        return ["--since", "2020-01-01T00:00Z", "--log", file]

    yield written
    purchase_log._log.cache_clear()


def send(cell: Cell, file: Path, quantity: int = 4) -> None:
    to = "b" if cell.name == "a" else "a"
    cell.run("send_stock", PRODUCT, quantity, "--to", to, "--reference", "t1", "--file", file)


def for_sale(cell: Cell) -> set[str]:
    with cell.entered():
        codes = VoucherCode.objects.filter(order_id=None, hold=None)
        return {open_code(code.sealed, code.digest).code for code in codes}


def test_the_sender_does_not_sell_what_it_sent(
    cells: tuple[Cell, Cell], log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = cells
    monkeypatch.setattr(sent_codes, "CODES_PER_LINE", 3)
    with backup(a) as restored:
        send(a, tmp_path / "t1")
        b.run("receive_stock", tmp_path / "t1")
        hold_codes = ["hold_codes", *log()]
        assert for_sale(restored) & for_sale(b) == {f"a-{number}" for number in range(16, 20)}

        assert restored.run(*hold_codes)["sent_codes_voided"] == 4
        assert for_sale(restored) == for_sale(a)
        assert restored.run(*hold_codes)["sent_codes_voided"] == 0
        send(restored, tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "t1").read_bytes()
        assert for_sale(restored) == for_sale(a)
        assert restored.run("reconcile", "--decrypt")["findings"] == []
        hold = restored.run("hold_codes", "--all")["hold"]
        restored.run("release_codes", hold)
        assert for_sale(restored) == for_sale(a)


def test_a_sent_code_that_was_sold_again_is_reported(
    cells: tuple[Cell, Cell], log: Log, tmp_path: Path
) -> None:
    a, _ = cells
    with backup(a) as restored:
        send(a, tmp_path / "t1")
        with restored.entered():
            merchant = make_merchant()
            orders = [
                merchant.buy(product_id=PRODUCT, quantity=8).json()["data"]["reference"]
                for _ in range(2)
            ]
            late = merchant.buy(product_id=PRODUCT, quantity=1).json()["data"]["reference"]
        held = restored.run("hold_codes", *log())
        assert (held["sold_again_with"], held["sent_codes_voided"]) == ([late], 3)
        assert late not in orders


def test_no_file_leaves_without_its_lines(
    cells: tuple[Cell, Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = cells
    file = tmp_path / "t1"
    words = ["send_stock", PRODUCT, 4, "--to", "b", "--reference", "t1", "--file", file]
    with a.entered():
        with suppress(OSError), Path("/dev/full").open("w") as full:
            monkeypatch.setattr("sys.stderr", full)
            refused = refusal(*words)
            monkeypatch.undo()
        assert "run the same command again" in refused
        assert not file.exists()
        assert StockTransfer.objects.count() == 1
    a.run(*words)
    assert file.exists()


def test_codes_that_arrive_again_after_hold_codes_are_held_by_the_next_run(
    cells: tuple[Cell, Cell], log: Log, tmp_path: Path
) -> None:
    a, b = cells
    send(a, tmp_path / "t1")
    log()  # the lines of cell `a`, which are not read in cell `b`
    with b.entered():
        merchant = make_merchant(balance="100.00")
    with backup(b) as restored:
        b.run("receive_stock", tmp_path / "t1")
        with b.entered():
            merchant.buy(product_id=PRODUCT, quantity=19)  # all codes that b had of its own
            bought = merchant.buy(product_id=PRODUCT, quantity=1).json()["data"]
        hold_codes = ["hold_codes", *log()]
        code = bought["codes"][0]["code"]
        assert code == "a-16"

        first = restored.run(*hold_codes)
        assert (len(first["purchases"]), code in for_sale(restored)) == (2, False)
        restored.run("receive_stock", tmp_path / "t1")
        assert code in for_sale(restored)
        second = restored.run(*hold_codes)
        assert (second["codes_held"], second["purchases"]) == (1, [])
        assert code not in for_sale(restored)
        assert restored.run("reconcile", "--decrypt")["findings"] == []


def test_a_purchase_that_moved_with_its_account_is_not_unpaid(
    cells: tuple[Cell, Cell], merchant: Merchant, log: Log, tmp_path: Path
) -> None:
    """The old cell is restored to before the purchase and the move. The new cell has its debit."""
    a, b = cells
    with backup(a) as restored:
        log()
        with asking(a, merchant):
            order = merchant.buy("k", product_id=PRODUCT, quantity=2).json()["data"]
        move(cells, merchant, tmp_path / "m1")

        leave(restored, merchant, tmp_path / "discarded")
        held = restored.run("hold_codes", *log())

        (found,) = held["purchases"]
        assert (found["reference"], found["account_moved"]) == (order["reference"], True)
        assert (found["unpaid"], held["codes_held"]) == (None, 2)
        with restored.entered():
            words = ["--reference", f"lost:{order['reference']}"]
            refused = refusal("deposit", merchant.client.account_id, "-2", *words)
            assert "look there before you book" in refused
        with b.entered():
            assert Order.objects.filter(reference=order["reference"]).exists()
        assert restored.run("reconcile", "--decrypt")["findings"] == []
    assert_healthy(b)


def test_a_lost_purchase_goes_along_when_its_account_moves_again(
    cells: tuple[Cell, Cell],
    merchant: Merchant,
    log: Log,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old cell is restored, and the first file is lost: the new cell received nothing."""
    a, b = cells
    monkeypatch.setattr(sending, "WAIT", sending.WAIT / 100)
    with backup(a) as restored:
        log()
        with asking(a, merchant):
            order = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["data"]
        leave(a, merchant, tmp_path / "lost")

        leave(restored, merchant, tmp_path / "m1")
        restored.run("hold_codes", *log())
        leave(restored, merchant, tmp_path / "m1")
        b.run("receive_account", tmp_path / "m1")
        with asking(b, merchant):
            error = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["error"]
            assert (error["code"], error["reference"]) == ("request_abandoned", order["reference"])
            assert LostPurchase.objects.get().reference == order["reference"]


def test_a_key_of_a_moved_account_buys_once_after_its_new_cell_is_restored(
    cells: tuple[Cell, Cell], merchant: Merchant, log: Log, tmp_path: Path
) -> None:
    a, b = cells
    leave(a, merchant, tmp_path / "m1")
    with backup(b) as restored:
        b.run("receive_account", tmp_path / "m1")
        log()
        with asking(b, merchant):
            order = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["data"]

        with restored.entered():
            make_merchant()  # takes ids that were free
        account = restored.run("receive_account", tmp_path / "m1")["account"]
        held = restored.run("hold_codes", *log())

        (found,) = held["purchases"]
        assert (found["account_id"], found["unpaid"]) == (account, 1)
        with asking(restored, merchant):
            error = merchant.buy("k", product_id=PRODUCT, quantity=1).json()["error"]
            assert (error["code"], error["reference"]) == ("request_abandoned", order["reference"])
            assert Wallet.objects.get(pk=account).closed_at is None
        assert restored.run("reconcile", "--decrypt")["findings"] == []
