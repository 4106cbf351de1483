"""Reads of the ledger that cost the same however long a wallet's history is."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from django.db.models import QuerySet, Sum

from accounts.models import Account
from config.database.functions import query
from wallets.models import EntryKind, LedgerEntry

# Much longer than any transaction lasts (wallets/sql/entries_since.sql says why).
MARGIN = timedelta(hours=1)
CHUNK = 1000


def entries_of(
    account: Account,
    *,
    kind: EntryKind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[LedgerEntry]:
    """The account's entries of this kind made from `since` on and before `until`, to be ordered by
    id. The dates are a range of ids, so a page of an old month costs what the newest does."""
    entries = LedgerEntry.objects.filter(wallet=account.pk)
    if kind is not None:
        entries = entries.filter(kind=kind)
    if since is not None:
        entries = entries.filter(
            pk__gte=_entries_since(account, since - MARGIN), created_at__gte=since
        )
    if until is not None:
        entries = entries.filter(
            pk__lt=_entries_since(account, until + MARGIN), created_at__lt=until
        )
    return entries


def spent_since(account: Account, moment: datetime) -> Decimal:
    """What purchases took from the wallet from this moment on; refunds are not counted."""
    purchases = entries_of(account, kind=EntryKind.PURCHASE, since=moment)
    return -(purchases.aggregate(total=Sum("amount"))["total"] or Decimal(0))


class StatementLine(NamedTuple):
    """What a statement says of an entry; nothing that staff wrote for themselves."""

    pk: int
    created_at: datetime
    kind: str
    amount: Decimal
    balance_after: Decimal
    order_reference: str | None


def read_in_chunks(entries: QuerySet[LedgerEntry]) -> Iterator[StatementLine]:
    """All of them, oldest first, in memory that does not grow with their number.

    Each chunk is a query of its own: no cursor and no transaction are held while somebody
    downloads slowly, and any pooler will do. Entries never change, so the chunks fit together;
    what is booked meanwhile is left out.
    """
    newest = entries.order_by("-pk").values_list("pk", flat=True).first()
    if newest is None:
        return
    seen = 0
    rows = entries.filter(pk__lte=newest).order_by("pk").values_list(*StatementLine._fields)
    while chunk := list(rows.filter(pk__gt=seen)[:CHUNK]):
        yield from map(StatementLine._make, chunk)
        seen = chunk[-1][0]


def _entries_since(account: Account, moment: datetime) -> int:
    found: int = query("wallets_entries_since", account.pk, moment)[0]["wallets_entries_since"]
    return found
