"""Codes that go from one cell to another are for sale in one of them (catalogue/transfers.py)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError, connection
from django.test import override_settings

from audit.models import AuditEntry
from catalogue import transfers
from catalogue.codes import open_code
from catalogue.models import Shelf, StockTransfer, VoucherCode
from tests.cells.two_cells import PRODUCT, VARIATION, Cell, backup, two_cells
from tests.commands import refusal, run
from tests.concurrency.racing import execute, holding_locks, scalar, wait_for_waiting
from tests.quick_starts import QuickProcess

pytestmark = pytest.mark.django_db(transaction=True)
CODES = [f"CODE-{number:04d}" for number in range(10)]


@pytest.fixture
def cells(alone: None, tmp_path: Path) -> Iterator[tuple[Cell, Cell]]:
    """Cell `a` has ten codes, cell `b` none. Both sell the same products."""
    with two_cells(tmp_path) as (a, b):
        a.fill(CODES)
        b.fill()
        yield a, b


def send(cell: Cell, file: Path, quantity: int = 4, reference: str = "t1", to: str = "b") -> object:
    return cell.run("send_stock", PRODUCT, quantity, *options(file, reference, to))


def options(file: Path, reference: str = "t1", to: str = "b") -> list[object]:
    return ["--to", to, "--reference", reference, "--file", file]


def for_sale(cell: Cell) -> list[str]:
    """The codes in stock, in the order of sale."""
    with cell.entered():
        codes = VoucherCode.objects.filter(order_id=None, hold=None).order_by("position")
        assert sum(Shelf.objects.values_list("available_stock", flat=True)) == len(codes)
        return [open_code(code.sealed, code.digest).code for code in codes]


def assert_healthy(*cells: Cell) -> None:
    for cell in cells:
        assert cell.run("reconcile", "--decrypt")["findings"] == []


def test_each_code_is_for_sale_in_one_cell(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    file = tmp_path / "t1"

    assert send(a, file) == {"reference": "t1", "to": "b", "codes": 4}
    assert (for_sale(a), for_sale(b)) == (CODES[:6], [])
    received = {"reference": "t1", "from": "a", "codes": 4, "received_before": False}
    received |= {"already_here": 0, "void_here": 0}
    assert b.run("receive_stock", file) == received

    assert (for_sale(a), for_sale(b)) == (CODES[:6], CODES[6:])
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [code for code in CODES if code.encode() in file.read_bytes()]
    assert_healthy(a, b)


def test_sending_again_writes_the_same_file(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, _ = cells
    send(a, tmp_path / "first")
    a.run("reseal")
    send(a, tmp_path / "second")

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert for_sale(a) == CODES[:6]


def test_receiving_again_adds_nothing(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    send(a, tmp_path / "t1")
    for before in (False, True, True):
        assert b.run("receive_stock", tmp_path / "t1")["received_before"] is before

    assert for_sale(b) == CODES[6:]
    assert_healthy(a, b)


def test_a_reference_names_one_transfer(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    send(a, tmp_path / "t1")
    with a.entered():
        for other in (
            [PRODUCT, 5, *options(tmp_path / "x")],
            [PRODUCT, 4, *options(tmp_path / "x", to="c")],
        ):
            assert "was used before" in refusal("send_stock", *other)
    b.run("receive_stock", tmp_path / "t1")
    assert for_sale(a) == CODES[:6]
    assert for_sale(b) == CODES[6:]


def test_two_senders_may_choose_one_reference(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    b.fill(["b-1", "b-2"])
    send(a, tmp_path / "from-a")
    send(b, tmp_path / "from-b", quantity=1, to="a")

    for _ in range(2):  # the second time, nothing is added
        b.run("receive_stock", tmp_path / "from-a")
        a.run("receive_stock", tmp_path / "from-b")
        assert for_sale(a) == [*CODES[:6], "b-2"]
        assert for_sale(b) == ["b-1", *CODES[6:]]
    assert_healthy(a, b)


def test_codes_are_read_in_one_transaction_without_a_timeout(
    cells: tuple[Cell, Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cursor outside a transaction reads all rows under the timeout of one statement, and breaks
    behind PgBouncer."""
    seen = []

    def opening(sealed: bytes, digest: bytes) -> object:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            seen.append((connection.in_atomic_block, *cursor.fetchone()))
        return open_code(sealed, digest)

    monkeypatch.setattr(transfers, "open_code", opening)
    send(cells[0], tmp_path / "t1")
    assert seen == [(True, "0")] * 4


def test_what_cannot_be_sent_changes_nothing(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, _ = cells
    with a.entered():
        for wrong, message in {
            (PRODUCT, 11): "has 10 codes in stock",
            (PRODUCT, 0): "at least one code",
            (1, 1): "no product 1",
        }.items():
            assert message in refusal("send_stock", *wrong, *options(tmp_path / "x"))
        for cell in ("a", "A!", ""):
            assert "another cell" in refusal(
                "send_stock", PRODUCT, 1, *options(tmp_path / "x", to=cell)
            )
        assert "Cannot write" in refusal(
            "send_stock", PRODUCT, 1, *options(tmp_path / "none" / "x")
        )
        assert StockTransfer.objects.count() == 1  # the file can be written elsewhere
    assert for_sale(a) == CODES[:9]


def test_a_file_that_is_not_whole_is_refused(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    file = tmp_path / "t1"
    send(a, file)
    lines = file.read_bytes().splitlines(keepends=True)
    first = lines[0]
    broken = {
        "cut": (lines[:-1], "incomplete"),
        "changed": ([*lines[:2], lines[2].swapcase(), *lines[3:]], "line 3"),
        "moved": ([*lines[:2], lines[3], lines[2], *lines[4:]], "line 3"),
        "removed": ([*lines[:2], *lines[3:]], "line 3"),
        "of another transfer": ([first.replace(b"t1", b"t2"), *lines[1:]], "line 2"),
        "for another cell": ([first.replace(b'"b"', b'"c"'), *lines[1:]], "for cell 'c'"),
        "of another version": ([first.replace(b'"1.', b'"0.'), *lines[1:]], "same version"),
        "of something else": ([b"code\n", *lines[1:]], "not a transfer file"),
        "an account": ([first.replace(b"stock", b"account"), *lines[1:]], "not of 'stock'"),
    }
    for what, (content, message) in broken.items():
        file.write_bytes(b"".join(content))
        with b.entered():
            assert message in refusal("receive_stock", file), what
    assert for_sale(b) == []
    with b.entered():
        assert not StockTransfer.objects.exists()


def test_a_file_opens_with_the_same_key_only(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    send(a, tmp_path / "t1")
    with b.entered():
        with override_settings(CELL_TRANSFER_KEY=bytes(64)):
            assert "CELL_TRANSFER_KEY is not" in refusal("receive_stock", tmp_path / "t1")
        with override_settings(CELL_TRANSFER_KEY=b""):
            assert "CELL_TRANSFER_KEY" in refusal("receive_stock", tmp_path / "t1")


def test_sent_codes_never_return(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, _ = cells
    send(a, tmp_path / "t1")
    with a.entered():
        hold = scalar("SELECT hold_id FROM catalogue_stocktransfer")
        assert "void" in refusal("release_codes", hold)
        for change in (
            "UPDATE catalogue_vouchercode SET hold_id = NULL",
            "UPDATE catalogue_codehold SET voided_at = NULL",
            "UPDATE catalogue_stocktransfer SET codes = 1",
            "DELETE FROM catalogue_stocktransfer",
            "TRUNCATE catalogue_stocktransfer",
        ):
            with pytest.raises(DatabaseError):
                execute(change)
    assert_healthy(a)


def test_a_code_that_is_there_already_is_skipped(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    """All ten are void in the sender, so nine must not wait for the tenth."""
    a, b = cells
    b.fill(CODES[4:5])
    send(a, tmp_path / "t1", quantity=10)
    for before in (False, True):
        received = b.run("receive_stock", tmp_path / "t1")
        assert (received["codes"], received["already_here"], received["void_here"]) == (9, 1, 0)
        assert received["received_before"] is before
    assert (for_sale(a), for_sale(b)) == ([], [CODES[4], *CODES[:4], *CODES[5:]])
    with b.entered():
        note = AuditEntry.objects.filter(action="codes_imported").latest("pk").note
        assert note == "Codes: 9. From cell a: t1. Already here: 1, void here: 0"
    assert_healthy(a, b)


def test_codes_that_come_back_are_counted_as_void(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    send(a, tmp_path / "t1", quantity=2)
    b.run("receive_stock", tmp_path / "t1")
    send(b, tmp_path / "back", quantity=2, reference="back", to="a")
    received = a.run("receive_stock", tmp_path / "back")
    assert (received["codes"], received["already_here"], received["void_here"]) == (0, 2, 2)
    assert (for_sale(a), for_sale(b)) == (CODES[:8], [])
    assert_healthy(a, b)


def test_another_file_with_the_reference_is_not_taken_for_the_first(
    cells: tuple[Cell, Cell], tmp_path: Path
) -> None:
    """The sender was restored, and sends other codes under the same reference."""
    a, b = cells
    with backup(a) as restored:
        send(a, tmp_path / "t1")
        send(restored, tmp_path / "other", quantity=5)
    b.run("receive_stock", tmp_path / "t1")
    whole = (tmp_path / "t1").read_bytes()
    (tmp_path / "cut").write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    with b.entered():
        message = refusal("receive_stock", tmp_path / "other")
        assert "Another file with the reference t1" in message
        assert "1 codes" in message
        assert "is incomplete" in refusal("receive_stock", tmp_path / "cut")
    assert for_sale(b) == CODES[6:]


def test_what_left_is_on_the_disk_first(
    cells: tuple[Cell, Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash must not bring codes back into stock that the other cell has."""
    a, _ = cells
    seen = []

    def recording(**entry: object) -> None:
        seen.append(scalar("SHOW synchronous_commit"))

    monkeypatch.setattr(transfers, "record_action", recording)
    with a.entered():
        execute("SET synchronous_commit = off")
        run("send_stock", PRODUCT, 4, *options(tmp_path / "t1"))
        assert (seen, scalar("SHOW synchronous_commit")) == (["on"], "off")
        execute("RESET synchronous_commit")


def test_a_variation_goes_to_its_shelf(cells: tuple[Cell, Cell], tmp_path: Path) -> None:
    a, b = cells
    a.fill(large=["LARGE-1"])
    a.run("send_stock", PRODUCT, 1, "--variation", VARIATION, *options(tmp_path / "t2", "t2"))
    b.run("receive_stock", tmp_path / "t2")
    with b.entered():
        assert VoucherCode.objects.get().shelf.variation_id == VARIATION


def test_a_kill_at_any_moment_loses_and_doubles_nothing(
    cells: tuple[Cell, Cell], tmp_path: Path
) -> None:
    a, b = cells
    file = tmp_path / "t1"
    words = ["send_stock", PRODUCT, 4, *options(file)]

    # Killed before its commit: nothing was taken.
    with a.entered(), holding_locks("LOCK catalogue_stocktransfer IN EXCLUSIVE MODE"):
        killed = a.start(*words)
        wait_for_waiting()
        kill(killed)
    assert (for_sale(a), file.exists()) == (CODES, False)

    # Ended between its commit and the file: the same command writes the file.
    words[-1] = tmp_path / "no folder" / "t1"
    assert a.run_apart(*words).returncode == 1
    assert for_sale(a) == CODES[:6]
    words[-1] = file
    assert a.run_apart(*words).returncode == 0

    # Killed before the commit of the receiver: nothing has arrived. Then it arrives once.
    with b.entered(), holding_locks("LOCK catalogue_stocktransfer IN EXCLUSIVE MODE"):
        killed = b.start("receive_stock", file)
        wait_for_waiting()
        kill(killed)
    assert for_sale(b) == []
    for before in (False, True):
        done = b.run_apart("receive_stock", file)
        assert (done.returncode, f'"received_before":{str(before).lower()}' in done.stdout) == (
            0,
            True,
        ), done.stderr

    assert sorted(for_sale(a) + for_sale(b)) == CODES
    assert_healthy(a, b)


def kill(process: QuickProcess) -> None:
    process.popen.kill()
    process.popen.wait(10)
