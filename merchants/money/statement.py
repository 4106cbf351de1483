"""Writes a statement as a file, in pieces, so its size is not limited by memory."""

from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext

from accounts.models import Account
from accounts.preferences.time_zones import local_text
from core.files.table_files import exact_time, write_table
from core.json_output import dumps
from orders.account_orders import find_by_reference
from orders.models import Order
from wallets.models import EntryKind, LedgerEntry, bank_reference_of
from wallets.selectors import StatementLine, read_in_chunks

COLUMNS = [
    *("id", "time", "kind", "amount", "balance_after", "currency", "order_reference", "note"),
    *("bank_reference", "client", "product", "idempotency_key", "quantity"),
]
LINES_AT_ONCE = 200


def statement_rows(
    entries: QuerySet[LedgerEntry],
    *,
    account: Account,
    time_text: Callable[[datetime], str] = local_text,
) -> Iterator[list[Any]]:
    """The cells of COLUMNS for each entry, oldest first."""
    for entry, order in with_orders(entries):
        yield [
            entry.pk,
            time_text(entry.created_at),
            EntryKind(entry.kind),
            entry.amount,
            entry.balance_after,
            account.currency,
            entry.order_reference,
            entry.merchant_note,
            bank_reference_of(entry.kind, entry.booking_reference),
            *_order_cells(order),
        ]


def write_csv(entries: QuerySet[LedgerEntry], *, account: Account) -> Generator[bytes]:
    """Yields the column names, then one line for each entry, oldest first."""
    yield from write_table("csv", COLUMNS, statement_rows(entries, account=account), mark=False)


def write_xlsx(entries: QuerySet[LedgerEntry], *, account: Account) -> Generator[bytes]:
    """The same for a spreadsheet."""
    rows = statement_rows(entries, account=account)
    yield from write_table("xlsx", COLUMNS, rows, title=gettext("Statement"))


def write_json(entries: QuerySet[LedgerEntry], *, account: Account) -> Generator[bytes]:
    """Yields `{"account", "currency", "entries": [...]}`, oldest entry first.

    An incomplete download is not valid JSON.
    """
    yield b'{"account":%b,"currency":%b,"entries":[' % (
        dumps(account.name),
        dumps(account.currency),
    )
    between = b"\n"
    lines = (dumps(_as_json(entry, order)) for entry, order in with_orders(entries))
    for lines_together in _together(lines, between=b",\n"):
        yield between + lines_together
        between = b",\n"
    yield b"\n]}\n"


def with_orders(
    entries: QuerySet[LedgerEntry],
) -> Iterator[tuple[StatementLine, Order | None]]:
    """Each entry with its order, oldest first. Reads the orders of many entries at once."""
    lines = read_in_chunks(entries)
    while some := list(islice(lines, LINES_AT_ONCE)):
        orders = find_by_reference(line.order_reference for line in some)
        for line in some:
            yield line, orders.get(line.order_reference or "")


def _order_cells(order: Order | None) -> tuple[str, str, str, int | None]:
    """The client, the product, the idempotency key and the quantity of the order."""
    if order is None:
        return "", "", "", None
    return order.client.name, order.goods, order.idempotency_key or "", order.quantity


def _as_json(entry: StatementLine, order: Order | None) -> dict[str, Any]:
    client, product, key, quantity = _order_cells(order)
    return {
        "id": entry.pk,
        "time": str(exact_time(entry.created_at)),
        "kind": entry.kind,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "order_reference": entry.order_reference,
        "note": entry.merchant_note,
        "bank_reference": bank_reference_of(entry.kind, entry.booking_reference) or None,
        "client": client or None,
        "product": product or None,
        "idempotency_key": key or None,
        "quantity": quantity,
    }


def _together(lines: Iterable[bytes], between: bytes = b"") -> Iterator[bytes]:
    """Joins 200 lines into one piece. Sending a line alone costs more than making it."""
    some: list[bytes] = []
    for line in lines:
        some.append(line)
        if len(some) == LINES_AT_ONCE:
            yield between.join(some)
            some = []
    if some:
        yield between.join(some)
