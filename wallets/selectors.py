"""Reading the ledger. A read costs the same however many entries the wallet has."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.models import Case, CharField, F, Func, Model, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import Contains, Exact

from accounts.models import Account
from core.database.functions import query
from wallets.models import REVERSAL_OF, BookingApproval, BookingKey, EntryKind, LedgerEntry

# Much longer than any transaction. wallets/sql/entries_since.sql says why it is needed.
MARGIN = timedelta(hours=1)
Row = TypeVar("Row", bound=Model)
CHUNK = 1000  # entries per query
MOST_BOOKINGS = 1_500
SEARCHED = 1_000  # the newest rows of an account, in which a merchant's search looks
SHORTEST_PART = 3  # letters and digits of a reference
# The operators with tildes compare bytes, and so use the index for LIKE in any locale.
FIND_BOOKINGS = """
    SELECT entry_id
      FROM wallets_booking_key(%(words)s) AS beginning
     CROSS JOIN LATERAL (
           (SELECT entry_id, key FROM wallets_bookingkey WHERE key = beginning)
           UNION ALL
           (SELECT entry_id, key FROM wallets_bookingkey
             WHERE key ~>~ beginning
               AND key ~<~ (beginning || chr(1114111))
             ORDER BY key USING ~<~
             LIMIT %(most)s)) AS found
      JOIN wallets_ledgerentry AS entry ON entry.id = entry_id
     WHERE key = beginning OR booking_reference !~ '^[a-z-]+:'
"""


def entries_of(
    account: Account,
    *,
    kind: EntryKind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[LedgerEntry]:
    """The account's ledger entries, optionally of one kind, created from `since` on and before
    `until`. Order them by id.

    The dates become a range of ids, so a page of an old month costs as much as the newest page.
    """
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


def reference_of(booking: LedgerEntry | BookingApproval) -> str:
    """The reference by which staff look for a booking: that of its order, or its own. A reversal
    has that of the booking that it reverses."""
    if booking.reversed_entry is not None:
        booking = LedgerEntry.objects.get(pk=booking.reversed_entry)
    return booking.order_reference or booking.booking_reference or ""


def find_booking(booking_reference: str) -> LedgerEntry | None:
    """The entry with this booking reference, compared without case, spaces and punctuation."""
    entries = LedgerEntry.objects.select_related("wallet__account")
    if exact := entries.filter(booking_reference=booking_reference).first():
        return exact
    key = booking_key(Value(booking_reference))
    return entries.filter(pk__in=BookingKey.objects.filter(key=key).values("entry")).first()


def find_bookings(words: str) -> list[int]:
    """The ids of the bookings whose reference begins with these words, compared like a booking
    reference, and of their reversals.

    It reads MOST_BOOKINGS references at most, however many bookings there are. References that the
    service made are found only as a whole.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_BOOKINGS, {"words": words, "most": MOST_BOOKINGS})
        ids = [pk for (pk,) in cursor]
    reversals = [f"{REVERSAL_OF}{pk}" for pk in ids]
    found = LedgerEntry.objects.filter(booking_reference__in=reversals)
    return [*ids, *found.values_list("pk", flat=True)]


def find_payments(bank_reference: str, *, account: Account) -> list[LedgerEntry]:
    """The deposit or payout of the account with this bank reference, then the deposits with this
    text in it (`newest_with`). Bookings of other accounts change neither the result nor the
    number of rows that are read."""
    whole = find_booking(bank_reference)
    entries = LedgerEntry.objects.select_related("wallet__account")
    deposits = Q(wallet=account.pk, kind=EntryKind.DEPOSIT)
    found = list(newest_with(bank_reference, entries, "booking_reference", of=deposits))
    if whole is not None and whole.wallet_id == account.pk:
        found = [whole, *(one for one in found if one != whole)]
    return [one for one in found if one.bank_reference]


def newest_with(words: str, rows: QuerySet[Row], name: str, *, of: Q) -> QuerySet[Row]:
    """Finds these words in the column `name` of the newest SEARCHED rows `of` somebody. The rows
    come newest first. Words are compared like booking references; one or two letters or digits must
    be the whole reference.

    The rows are read by their keys alone: with another condition, PostgreSQL may read all that
    meet it."""
    newest = rows.order_by("-pk")
    keys = list(newest.filter(of).values_list("pk", flat=True)[:SEARCHED])
    is_short = sum(map(str.isalnum, words)) < SHORTEST_PART
    compare = Exact if is_short else Contains
    return newest.filter(compare(booking_key(F(name)), booking_key(Value(words))), pk__in=keys)


def reversal_of(entry: LedgerEntry) -> LedgerEntry | None:
    """The entry that reverses this one; None if there is none."""
    return LedgerEntry.objects.filter(booking_reference=entry.reversal_reference).first()


def booking_key(reference: Any) -> Func:
    """The booking reference of an expression, without case, spaces and punctuation."""
    return Func(reference, function="wallets_booking_key", output_field=CharField())


def left_to_pay_back(order_reference: str) -> Decimal:
    """The cost of an order, less its refund and its credits."""
    entries = LedgerEntry.objects.filter(order_reference=order_reference)
    return -(entries.aggregate(total=Sum("amount"))["total"] or Decimal(0))


def paid_back(order_references: Collection[str]) -> dict[str, dict[str, Decimal]]:
    """The sums of refunds and of credits, by the reference of the order and the kind of the entry.

    Sums of zero are left out: a credit may have been reversed.
    """
    entries = LedgerEntry.objects.filter(
        order_reference__in=order_references, kind__in=[EntryKind.REFUND, EntryKind.CREDIT]
    )
    sums: dict[str, dict[str, Decimal]] = {}
    for order, kind, total in (
        entries.values_list("order_reference", "kind").annotate(total=Sum("amount")).order_by()
    ):
        if total:
            sums.setdefault(str(order), {})[kind] = total
    return sums


class StatementLine(NamedTuple):
    """An entry as a statement shows it: with its reason, and of the notes only those of credits. Of
    the booking references, only those of the bank are part of it (`bank_reference_of`)."""

    pk: int
    created_at: datetime
    kind: str
    amount: Decimal
    balance_after: Decimal
    order_reference: str | None
    booking_reference: str | None
    merchant_note: str


# LedgerEntry.merchant_note, for queries.
MERCHANT_NOTE = Coalesce(
    "reason", Case(When(kind=EntryKind.CREDIT, then=F("note")), default=Value(""))
)


def read_in_chunks(entries: QuerySet[LedgerEntry]) -> Iterator[StatementLine]:
    """All entries, oldest first, in bounded memory.

    Each chunk is a query of its own. A slow download holds no cursor and no transaction open, and
    works behind any connection pooler. Entries never change, so the chunks are consistent; entries
    booked during the read are left out.
    """
    newest = entries.order_by("-pk").values_list("pk", flat=True).first()
    if newest is None:
        return
    seen = 0
    oldest_first = entries.filter(pk__lte=newest).order_by("pk")
    rows = oldest_first.values_list(*StatementLine._fields[:-1], MERCHANT_NOTE)
    while chunk := list(rows.filter(pk__gt=seen)[:CHUNK]):
        yield from map(StatementLine._make, chunk)
        seen = chunk[-1][0]


def _entries_since(account: Account, moment: datetime) -> int:
    first: int = query("wallets_entries_since", account.pk, moment)[0]["wallets_entries_since"]
    return first
