"""Ledger entries as lines of the audit trail (core/trails.py): all kinds but purchases."""

from collections.abc import Sequence

from django.db.models import Q

from core.trails import Line, Objects, Trail, by_name, who_and_where
from wallets.models import EntryKind, LedgerEntry

# The condition of the partial indexes, which cost a purchase no entry.
IS_NOT_PURCHASE = ~Q(kind=EntryKind.PURCHASE)

# What the history of an account shows. A refund belongs to the history of its order.
BY_STAFF = [EntryKind.DEPOSIT, EntryKind.PAYOUT, EntryKind.ADJUSTMENT, EntryKind.CREDIT]


def entry_line(entry: LedgerEntry) -> Line:
    """What a ledger entry says, read with `wallet__account`."""
    who, where = who_and_where(entry.actor)
    currency = entry.wallet.account.currency
    money = f"{entry.amount:+,.2f} {currency}, balance {entry.balance_after:,.2f} {currency}"
    return Line(
        at=entry.created_at,
        what=entry.get_kind_display(),
        on=("wallets.ledgerentry", str(entry.pk)),
        name=entry.order_reference or entry.wallet.account.name,
        who=who,
        where=where,
        note=f"{money}. {entry.note}" if entry.note else money,
        colour="success" if entry.amount > 0 else "warning",
    )


def _about(objects: Objects) -> Sequence[Q]:
    entries = objects.get("wallets.ledgerentry", ())
    wallets = {*objects.get("wallets.wallet", ()), *objects.get("accounts.account", ())}
    return [
        *([Q(pk__in=entries)] if entries else []),
        *[Q(wallet=wallet, kind=kind) for wallet in sorted(wallets) for kind in BY_STAFF],
    ]


def _called(name: str) -> Sequence[Q]:
    return [Q(order_reference=name), Q(booking_reference=name)]


TRAIL = Trail(
    title="Money booked",
    model=LedgerEntry,
    seen_with=LedgerEntry,
    rows=lambda: LedgerEntry.objects.filter(IS_NOT_PURCHASE).prefetch_related("wallet__account"),
    line=entry_line,
    by=by_name("actor"),
    about=_about,
    called=_called,
)
