"""An account that goes from cell `a` to cell `b`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cells.two_cells import Cell
from tests.commands import run
from tests.concurrency.books import assert_books_balance
from tests.factories import (
    Merchant,
)


def leave(cell: Cell, merchant: Merchant, file: Path, *options: object) -> dict[str, Any]:
    words = ["--to", "b", "--reference", "m1", "--file", file, *options]
    return cell.run("send_account", merchant.client.account_id, *words)


def move(cells: tuple[Cell, Cell], merchant: Merchant, file: Path) -> dict[str, Any]:
    """The whole move. Returns what `receive_account` printed."""
    leave(cells[0], merchant, file)
    return cells[1].run("receive_account", file)


@contextmanager
def asking(cell: Cell, merchant: Merchant) -> Iterator[Merchant]:
    """The merchant's program, whose requests reach this cell."""
    with cell.entered():
        yield merchant


def run_leaving(merchant: Merchant, file: Path) -> dict[str, Any]:
    words = ["--to", "b", "--reference", "m1", "--file", file]
    return run("send_account", merchant.client.account_id, *words)


def assert_healthy(*cells: Cell) -> None:
    for cell in cells:
        with cell.entered():
            assert run("reconcile", "--decrypt")["findings"] == []
            assert run("verify_ledger")["ok"] is True
            assert_books_balance()
