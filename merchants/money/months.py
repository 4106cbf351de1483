"""The months of an account that are closed: balances and sums, from the daily closes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Count, QuerySet, Sum, TextChoices
from django.db.models.functions import TruncMonth
from django.utils.translation import gettext as _

from accounts.models import Account
from core.files.table_files import exact_time
from core.formats import local_day
from core.texts import lazy
from merchants.money.statement import COLUMNS, statement_rows
from wallets.evidence.closes import COLUMNS as SUMS
from wallets.evidence.closes import last_closed_day
from wallets.models import EntryKind, LedgerEntry, MonthlyStatement, WalletClose
from wallets.selectors import entries_of

DAY = timedelta(days=1)
NAMES = {
    EntryKind.DEPOSIT: lazy("Deposits"),
    EntryKind.PAYOUT: lazy("Payouts"),
    EntryKind.ADJUSTMENT: lazy("Adjustments"),
    EntryKind.PURCHASE: lazy("Purchases"),
    EntryKind.REFUND: lazy("Refunds"),
    EntryKind.CREDIT: lazy("Credits"),
    EntryKind.REPLACEMENT: lazy("Replacements"),
}


class KindSum(NamedTuple):
    """A kind of entry by its name for people, how many entries a month has of it, and their sum."""

    name: str
    number: int
    amount: Decimal


@dataclass
class Month:
    """A closed month: its balances, the sum of each kind of entry that moves money, and the closes
    of the days on which the wallet moved."""

    first: date
    opening: Decimal
    closing: Decimal
    sums: Mapping[EntryKind, Decimal] = field(default_factory=dict)
    days: list[WalletClose] = field(default_factory=list)

    @property
    def end(self) -> date:
        """The first day after the month."""
        return month_after(self.first)

    @property
    def last(self) -> date:
        """The last day of the month."""
        return self.end - DAY

    @property
    def name(self) -> str:
        """The month as text, such as 2026-11."""
        return f"{self.first:%Y-%m}"

    @property
    def columns(self) -> tuple[Decimal, Decimal, Decimal, Decimal]:
        """The sums that the list of months shows between the balances: deposits, purchases, refunds
        with credits, payouts with adjustments."""
        return (
            self._sum(EntryKind.DEPOSIT),
            self._sum(EntryKind.PURCHASE),
            self._sum(EntryKind.REFUND, EntryKind.CREDIT),
            self._sum(EntryKind.PAYOUT, EntryKind.ADJUSTMENT),
        )

    def _sum(self, *kinds: EntryKind) -> Decimal:
        return sum((self.sums.get(kind, Decimal(0)) for kind in kinds), Decimal(0))

    def kinds(self, account: Account) -> list[KindSum]:
        """A line for each kind of entry, and one for all together. Counts the month's entries."""
        counted = self.entries(account).order_by().values_list("kind").annotate(Count("pk"))
        numbers = dict(counted)
        return [
            *(
                KindSum(str(name), numbers.get(kind, 0), self._sum(kind))
                for kind, name in NAMES.items()
            ),
            KindSum(_("All entries"), sum(numbers.values()), self.closing - self.opening),
        ]

    def statement(self, account: Account) -> MonthlyStatement:
        """The statement as it was issued."""
        statements = MonthlyStatement.objects.select_related("wallet__account")
        return statements.get(wallet=account.pk, month=self.first)

    def entries(self, account: Account) -> QuerySet[LedgerEntry]:
        """The entries of the month."""
        since, until = (datetime.combine(day, time(), UTC) for day in (self.first, self.end))
        return entries_of(account, since=since, until=until)


def month_after(first: date) -> date:
    """The first day after the month that begins with `first`."""
    return (first + timedelta(days=31)).replace(day=1)


def closed_months(account: Account) -> list[Month]:
    """All months since the first entry of the account whose days are closed, newest first, without
    their days."""
    last = last_closed_day()
    closes = WalletClose.objects.filter(wallet=account.pk)
    begin = closes.order_by("day").first()
    months: list[Month] = []
    if last is None or begin is None:
        return months
    newest = closes.annotate(month=TruncMonth("day")).order_by("month", "-day").distinct("month")
    closing = dict(newest.values_list("month", "closing"))
    moved = closes.order_by().annotate(month=TruncMonth("day")).values_list("month")
    sums = {
        first: dict(zip(SUMS, amounts, strict=True))
        for first, *amounts in moved.annotate(*map(Sum, SUMS.values()))
    }
    first, balance = begin.day.replace(day=1), begin.opening
    while True:
        month = Month(first, balance, closing.get(first, balance), sums.get(first, {}))
        if month.end > last + DAY:
            break
        months.append(month)
        first, balance = month.end, month.closing
    return months[::-1]


def find_month(account: Account, name: str) -> Month | None:
    """The closed month with this name; None if there is none. Reads no other month, except for the
    last close before it."""
    try:
        first = date.fromisoformat(f"{name}-01")
    except ValueError:
        return None
    last = last_closed_day()
    if last is None or first > last:
        return None
    closes = WalletClose.objects.filter(wallet=account.pk).order_by("day")
    month = Month(first, Decimal(0), Decimal(0))
    month.days = list(closes.filter(day__gte=first, day__lt=month.end))
    before = closes.filter(day__lt=first).last()
    if month.end > last + DAY or not (before or month.days):
        return None
    month.opening = before.closing if before else month.days[0].opening
    month.closing = month.days[-1].closing if month.days else month.opening
    month.sums = {
        kind: sum((getattr(day, name) for day in month.days), Decimal(0))
        for kind, name in SUMS.items()
    }
    return month


def heading_of(issued: MonthlyStatement) -> list[tuple[str, str]]:
    """The number, the period and the date of a statement, by their names."""
    first, last = local_day(issued.month), local_day(month_after(issued.month) - DAY)
    return [
        (_("Statement number"), issued.number),
        (_("Period"), _("%(first)s to %(last)s") % {"first": first, "last": last}),
        (_("Date of issue"), local_day(issued.issued_at.astimezone(UTC).date())),
        (_("Account"), issued.recipient["name"]),
        (_("Currency"), issued.wallet.account.currency),
    ]


class BalanceLine(TextChoices):
    """The kind of the first and of the last line of a month, which are no entries."""

    OPENING = "opening balance", lazy("Opening balance")
    CLOSING = "closing balance", lazy("Closing balance")


def month_rows(month: Month, account: Account) -> Iterator[list[Any]]:
    """The cells of a statement's COLUMNS: the opening balance, each entry, the closing balance."""
    yield _balance(month.first, BalanceLine.OPENING, month.opening, account)
    entries = month.entries(account)
    yield from statement_rows(entries, account=account, time_text=exact_time)
    yield _balance(month.end, BalanceLine.CLOSING, month.closing, account)


def _balance(day: date, kind: BalanceLine, balance: Decimal, account: Account) -> list[Any]:
    cells = {
        "time": exact_time(datetime.combine(day, time(), UTC)),
        "kind": kind,
        "balance_after": balance,
        "currency": account.currency,
    }
    return [cells.get(name) for name in COLUMNS]
