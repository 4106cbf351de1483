"""A statement as a file: made and sent piece by piece, whatever its size."""

import csv
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from accounts.models import Account
from config.api.json import dumps, money_text
from wallets.models import LedgerEntry
from wallets.selectors import StatementLine, read_in_chunks

COLUMNS = ["id", "time", "kind", "amount", "balance_after", "currency", "order_reference"]
LINES_AT_ONCE = 200


def write_csv(entries: QuerySet[LedgerEntry], *, account: Account) -> Generator[bytes]:
    """A line for each entry, oldest first, below the names of the columns.

    Nothing in it is text that a person wrote, so no cell can be read as a formula by a spreadsheet
    but the amounts, which are plain numbers.
    """
    writer = csv.writer(_Echo())
    yield _line(writer, COLUMNS)
    yield from _together(
        _line(
            writer,
            [
                entry.pk,
                _time(entry.created_at),
                entry.kind,
                money_text(entry.amount),
                money_text(entry.balance_after),
                account.currency,
                entry.order_reference or "",
            ],
        )
        for entry in read_in_chunks(entries)
    )


def write_json(entries: QuerySet[LedgerEntry], *, account: Account) -> Generator[bytes]:
    """`{"account", "currency", "entries": [...]}`, oldest first; a broken download is no JSON."""
    yield b'{"account":%b,"currency":%b,"entries":[' % (
        dumps(account.name),
        dumps(account.currency),
    )
    between = b"\n"
    lines = (dumps(_as_json(entry)) for entry in read_in_chunks(entries))
    for lines_together in _together(lines, between=b",\n"):
        yield between + lines_together
        between = b",\n"
    yield b"\n]}\n"


def _as_json(entry: StatementLine) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "time": _time(entry.created_at),
        "kind": entry.kind,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "order_reference": entry.order_reference,
    }


def _together(lines: Iterable[bytes], between: bytes = b"") -> Iterator[bytes]:
    """Some hundred lines in one piece: sending each alone would cost more than making it."""
    some: list[bytes] = []
    for line in lines:
        some.append(line)
        if len(some) == LINES_AT_ONCE:
            yield between.join(some)
            some = []
    if some:
        yield between.join(some)


def _line(writer: Any, cells: list[Any]) -> bytes:
    text: str = writer.writerow(cells)
    return text.encode()


def _time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


class _Echo:
    """What csv writes into, to have the line back."""

    def write(self, line: str) -> str:
        return line
