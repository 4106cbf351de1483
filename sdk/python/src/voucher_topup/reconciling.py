"""Compares the journal with a statement of the merchant site."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from voucher_topup.journal import Entry, Journal


@dataclass(frozen=True)
class Reconciliation:
    """Differences between the journal and a statement. `is_clean` is true if there are none.

    `debits_unknown_here` are debits that no purchase of the journal explains: of another client of
    the account, of another journal, or of one of the `open_purchases`.
    """

    debits_unknown_here: tuple[str, ...]
    purchases_without_debit: tuple[str, ...]
    debited_twice: tuple[str, ...]
    other_amounts: tuple[str, ...]
    open_purchases: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not any(vars(self).values())


def reconcile(statement: str, journal: Journal) -> Reconciliation:
    """`statement` is the text of a statement, as CSV or JSON. The result names order references,
    and for open purchases order numbers."""
    rows = list(_rows(statement))
    times = [_time(row["time"]) for row in rows]
    debits = [row for row in rows if row["kind"] == "purchase"]
    counts = Counter(row["order_reference"] for row in debits)
    amounts = {row["order_reference"]: -Decimal(str(row["amount"])) for row in debits}
    bought = {entry.reference: entry for entry in journal.bought_entries() if entry.reference}
    first, last = min(times, default=0.0), max(times, default=0.0)
    return Reconciliation(
        debits_unknown_here=tuple(sorted(counts.keys() - bought.keys())),
        purchases_without_debit=tuple(
            sorted(
                reference
                for reference, entry in bought.items()
                if reference not in counts and first <= entry.opened_at <= last
            )
        ),
        debited_twice=tuple(sorted(name for name, count in counts.items() if count > 1)),
        other_amounts=tuple(sorted(_other_amounts(amounts, bought))),
        open_purchases=tuple(entry.order_number for entry in journal.open_entries()),
    )


def _other_amounts(amounts: Mapping[str, Decimal], bought: Mapping[str, Entry]) -> Iterable[str]:
    for reference, amount in amounts.items():
        entry = bought.get(reference)
        if entry and entry.total is not None and Decimal(entry.total) != amount:
            yield reference


def _rows(statement: str) -> Iterable[Mapping[str, Any]]:
    if statement.lstrip().startswith("{"):
        return json.loads(statement, parse_float=Decimal)["entries"]  # type: ignore[no-any-return]
    return csv.DictReader(io.StringIO(statement.lstrip("\ufeff")))


def _time(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
