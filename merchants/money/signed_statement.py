"""A part of a statement, and the hashes from its entries to a signed root of the ledger.

merchants/snippets/verify_statement.py checks the file. It contains no more than the statement, and
hashes: what staff wrote and may not be seen is behind a salted hash.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from django.db.models import Max, Min, QuerySet

from accounts.models import Account
from core.json_output import dumps
from wallets.evidence.chain import Entry, merkle_path, money, time_text
from wallets.evidence.roots import entries_between, leaves_of, stored_root
from wallets.models import LedgerEntry, RootLeaf, SignedRoot

FORMAT = "voucher signed statement v1"
TOGETHER = 200


def write_signed_statement(
    entries: QuerySet[LedgerEntry], *, account: Account
) -> Generator[bytes] | None:
    """The file in pieces; None if no entry of the period is signed yet.

    It contains every entry from the first to the last of `entries` that is signed.
    """
    ends = entries.aggregate(first=Min("pk"), last=Max("pk"))
    first, last = ends["first"], ends["last"]
    signed = RootLeaf.objects.filter(wallet=account.pk).order_by("root_id")
    if first is None:
        return None
    leaf = signed.filter(last_entry__gte=last).first() or signed.last()
    if leaf is None or leaf.last_entry < first:
        return None
    last = min(last, leaf.last_entry)
    return _pieces(account, first, last, leaf)


def _pieces(account: Account, first: int, last: int, signed: RootLeaf) -> Generator[bytes]:
    before = LedgerEntry.objects.filter(wallet=account.pk, pk__lt=first).order_by("-pk")
    start = before.values_list("chain", flat=True).first()
    root = stored_root(SignedRoot.objects.get(pk=signed.root_id))
    yield b'{"format":%b,"account":%b,"currency":%b,"wallet":%d,"start":%b,"entries":[' % (
        dumps(FORMAT),
        dumps(account.name),
        dumps(account.currency),
        account.pk,
        dumps(bytes(start).hex() if start else None),
    )
    yield from _list(_as_json(entry) for entry in entries_between(account.pk, first, last))
    yield b'],"later":['
    later = entries_between(account.pk, last + 1, signed.last_entry)
    yield from _list(entry.body().hex() for entry in later)
    tail = {
        "last_entry": signed.last_entry,
        "path": [
            {"side": side, "hash": beside.hex()}
            for side, beside in _path_to_the_root(account.pk, root.number)
        ],
        "root": root.as_json(),
    }
    yield b"]," + dumps(tail)[1:] + b"\n"


def _path_to_the_root(wallet: int, number: int) -> list[tuple[str, bytes]]:
    leaves = leaves_of(number)
    place = next(at for at, leaf in enumerate(leaves) if leaf.wallet == wallet)
    return merkle_path([leaf.hash() for leaf in leaves], place)


def _as_json(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.pk,
        "time": time_text(entry.created_at),
        "kind": entry.kind,
        "counterpart": entry.counterpart,
        "amount": money(entry.amount),
        "balance_after": money(entry.balance_after),
        "order_reference": entry.order_reference,
        "note": entry.merchant_note,
        "hidden": entry.hidden(),
    }


def _list(values: Iterable[Any]) -> Iterator[bytes]:
    """The values of a JSON list, some hundred in one piece."""
    some: list[bytes] = []
    between = b"\n"
    for value in values:
        some.append(between + dumps(value))
        between = b",\n"
        if len(some) == TOGETHER:
            yield b"".join(some)
            some = []
    yield b"".join(some)
