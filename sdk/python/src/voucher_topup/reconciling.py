"""Compares the journal with a statement of the merchant site."""

import csv
import io
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Optional, Union

from voucher_topup.journal import Entry, Journal

Day = Union[date, str]  # in UTC; as a text, 2026-10-31
# Seconds by which a debit may follow the last attempt, or the shop's clock may be wrong.
EDGE = 300.0
DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Reconciliation:
    """Differences between the journal and a statement. `is_clean` is true if there are none.

    `debits_unknown_here` are debits that no purchase of the journal explains: of another client of
    the account, of another journal, or of one of the `open_purchases`, which are those of the same
    time. `purchases_at_the_edge` are no differences: the day before or the day after may have their
    debits.
    """

    debits_unknown_here: tuple[str, ...]
    purchases_without_debit: tuple[str, ...]
    debited_twice: tuple[str, ...]
    other_amounts: tuple[str, ...]
    open_purchases: tuple[str, ...]
    purchases_at_the_edge: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not any(
            names for kind, names in vars(self).items() if kind != "purchases_at_the_edge"
        )


def reconcile(
    statement: str, journal: Journal, *, since: Optional[Day] = None, until: Optional[Day] = None
) -> Reconciliation:
    """Compares the journal with the text of a statement, as CSV or JSON.

    `since` and `until` are the first and the last day of the statement, as in its address. These
    are days in UTC if the statement was downloaded with a key for books, or by a member whose time
    zone is UTC: use no other. A purchase that was first written on these days needs a debit, even
    if the statement is empty. Without both, only purchases between the first and the last entry
    need one, and every open purchase is named. The result names order references, and for open
    purchases order numbers.

    The journal does not store when a purchase was debited. It was between its first write and its
    last attempt, with five minutes on each side. If this time crosses the beginning or the end of
    the period, the purchase is at the edge. Each day, compare the last two days: then each purchase
    is inside at least one comparison.

    Download the statement after the day `until`. Raises ValueError if this day is not over or is
    before `since`, or if only one of the two is given.
    """
    begins, ends = _period(since, until)
    rows = list(_rows(statement))
    times = [_time(row["time"]) for row in rows]
    debits = [row for row in rows if row["kind"] == "purchase"]
    counts = Counter(row["order_reference"] for row in debits)
    amounts = {row["order_reference"]: -Decimal(str(row["amount"])) for row in debits}
    bought = {entry.reference: entry for entry in journal.bought_entries() if entry.reference}
    first = min(times, default=math.inf) if begins is None else begins
    last = max(times, default=-math.inf) if ends is None else ends
    missing = {
        reference
        for reference, entry in bought.items()
        if reference not in counts and first <= entry.opened_at <= last
    }
    at_the_edge = {name for name in missing if _is_at_the_edge(bought[name], begins, ends)}
    return Reconciliation(
        debits_unknown_here=tuple(sorted(counts.keys() - bought.keys())),
        purchases_without_debit=tuple(sorted(missing - at_the_edge)),
        debited_twice=tuple(sorted(name for name, count in counts.items() if count > 1)),
        other_amounts=tuple(sorted(_other_amounts(amounts, bought))),
        open_purchases=tuple(
            entry.order_number
            for entry in journal.open_entries()
            if begins is None or ends is None or _overlaps(entry, begins, ends)
        ),
        purchases_at_the_edge=tuple(sorted(at_the_edge)),
    )


def _overlaps(entry: Entry, begins: float, ends: float) -> bool:
    """Whether the purchase may have been debited in this period."""
    return entry.opened_at - EDGE < ends and (entry.sent_at or entry.opened_at) + EDGE > begins


def _is_at_the_edge(entry: Entry, begins: Optional[float], ends: Optional[float]) -> bool:
    earliest, latest = entry.opened_at - EDGE, (entry.sent_at or entry.opened_at) + EDGE
    return (begins is not None and earliest < begins) or (ends is not None and latest >= ends)


def debits_of_key(statement: str, entry: Entry, *, since: Day, until: Day) -> list[tuple[str, str]]:
    """References and amounts of the debits with the key of the purchase, of any client.

    Raises ValueError if the period is not over, or does not contain every attempt.
    """
    begins, ends = _period(since, until)
    if _is_at_the_edge(entry, begins, ends):
        raise ValueError(f"{since} to {until} does not contain every attempt of the purchase")
    return [
        (row["order_reference"], str(-Decimal(str(row["amount"]))))
        for row in _rows(statement)
        if row["kind"] == "purchase" and row["idempotency_key"] == entry.key
    ]


def _other_amounts(amounts: Mapping[str, Decimal], bought: Mapping[str, Entry]) -> Iterable[str]:
    for reference, amount in amounts.items():
        entry = bought.get(reference)
        if entry and entry.total is not None and Decimal(entry.total) != amount:
            yield reference


def _rows(statement: str) -> Iterable[Mapping[str, Any]]:
    if statement.lstrip().startswith("{"):
        return json.loads(statement, parse_float=Decimal)["entries"]  # type: ignore[no-any-return]
    return csv.DictReader(io.StringIO(statement.lstrip("\ufeff")))


def _period(since: Optional[Day], until: Optional[Day]) -> tuple[Optional[float], Optional[float]]:
    """The Unix times at which a period begins and ends. Raises ValueError."""
    if since is None and until is None:
        return None, None
    if since is None or until is None:
        raise ValueError("Give both since and until, or neither")
    begins, ends = _midnight(since), _midnight(until) + DAY
    if ends > time.time():
        raise ValueError(f"{until} is not over: choose an earlier day")
    if begins >= ends:
        raise ValueError(f"{until} is before {since}")
    return begins, ends


def _midnight(day: Day) -> float:
    """The Unix time at which the day begins."""
    try:
        return datetime.fromisoformat(f"{date.fromisoformat(str(day))}T00:00:00+00:00").timestamp()
    except ValueError:
        raise ValueError(f"Not a day such as 2026-10-31: {day}") from None


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
