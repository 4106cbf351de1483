"""The libraries compare a journal with a statement: which purchases need a debit in it.

`test_typescript_client.py` tries the same comparisons.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from voucher_topup import Entry, MemoryJournal
from voucher_topup.reconciling import reconcile


def at(text: str) -> float:
    """A Unix time in October 2026, such as `at("31 12:00:00")`."""
    return datetime.fromisoformat(f"2026-10-{text.replace(' ', 'T')}+00:00").timestamp()


def days(since: str, until: str) -> dict[str, str]:
    """A period in October 2026."""
    return {"since": f"2026-10-{since}", "until": f"2026-10-{until}"}


def tomorrow() -> str:
    return (datetime.now(UTC) + timedelta(days=1)).date().isoformat()


@dataclass(frozen=True)
class Comparison:
    """Purchases `(reference, opened at, sent at)`, debits `(reference, time)`, and the result."""

    purchases: list[tuple[str, float, float]]
    debits: list[tuple[str, str]] = field(default_factory=list)
    period: dict[str, str] = field(default_factory=dict)
    without_debit: list[str] = field(default_factory=list)
    at_the_edge: list[str] = field(default_factory=list)

    @property
    def statement(self) -> str:
        entries: list[dict[str, Any]] = [
            {
                "time": f"2026-10-{time.replace(' ', 'T')}Z",
                "kind": "purchase",
                "amount": -1.00,
                "order_reference": reference,
            }
            for reference, time in self.debits
        ]
        # A code that was replaced: an order that nobody bought.
        replaced = [{**entry, "kind": "replacement", "amount": 0} for entry in entries[:1]]
        entries += [{**entry, "order_reference": "REPLACEMENT"} for entry in replaced]
        return json.dumps({"entries": entries})


NOON = ("NOON", at("31 12:00:00"), at("31 12:00:01"))
LATE = ("LATE", at("31 23:59:58"), at("31 23:59:59"))
EARLY = ("EARLY", at("31 00:00:01"), at("31 00:00:01"))
AGAIN = ("AGAIN", at("30 10:00:00"), at("31 09:00:00"))  # sent again the next day
EVENING = ("EVENING", at("31 23:00:00"), at("31 23:00:00"))
COMPARISONS = {
    "an empty statement of a period": Comparison(
        [NOON], period=days("31", "31"), without_debit=["NOON"]
    ),
    "an empty statement": Comparison([NOON]),
    "before the first entry": Comparison(
        [NOON, EVENING],
        debits=[("EVENING", "31 23:00:00")],
        period=days("31", "31"),
        without_debit=["NOON"],
    ),
    "before the first entry, without a period": Comparison(
        [NOON, EVENING], debits=[("EVENING", "31 23:00:00")]
    ),
    "after the last entry": Comparison(
        [NOON, EVENING],
        debits=[("NOON", "31 12:00:01")],
        period=days("31", "31"),
        without_debit=["EVENING"],
    ),
    "between two entries": Comparison(
        [("FIRST", at("31 11:59:59"), at("31 11:59:59")), NOON, EVENING],
        debits=[("FIRST", "31 11:59:59"), ("EVENING", "31 23:00:00")],
        without_debit=["NOON"],
    ),
    "another day": Comparison([NOON, AGAIN], period=days("28", "29")),
    "the day after may have its debit": Comparison(
        [LATE], period=days("31", "31"), at_the_edge=["LATE"]
    ),
    "the day before may have its debit": Comparison(
        [EARLY], period=days("31", "31"), at_the_edge=["EARLY"]
    ),
    "the day before, both days": Comparison(
        [EARLY], period=days("30", "31"), without_debit=["EARLY"]
    ),
    "debits at the edge": Comparison(
        [LATE, EARLY],
        debits=[("EARLY", "31 00:00:02"), ("LATE", "31 23:59:59")],
        period=days("31", "31"),
    ),
    "sent again, the first day": Comparison(
        [AGAIN], period=days("30", "30"), at_the_edge=["AGAIN"]
    ),
    "sent again, the second day": Comparison([AGAIN], period=days("31", "31")),
    "sent again, both days": Comparison([AGAIN], period=days("30", "31"), without_debit=["AGAIN"]),
    "five minutes": Comparison(
        [
            ("A", at("31 00:04:59"), at("31 00:05:00")),
            ("B", at("31 00:05:00"), at("31 00:05:00")),
            ("C", at("31 23:54:59"), at("31 23:54:59")),
            ("D", at("31 23:54:59"), at("31 23:55:00")),
        ],
        period=days("31", "31"),
        without_debit=["B", "C"],
        at_the_edge=["A", "D"],
    ),
}
ANY_WRONG_PERIOD = pytest.mark.parametrize(
    "period",
    [
        {"since": "2026-10-31", "until": tomorrow()},
        {"since": "2026-10-31", "until": "2026-10-30"},
        {"since": "2026-10-31"},
        {"until": "2026-10-31"},
        {"since": "2026-02-30", "until": "2026-10-31"},
        {"since": "2026-10-31", "until": "31.10.2026"},
        {"since": "2026-10-31", "until": "2026-10-31T00:00:00Z"},
    ],
)
ANY_COMPARISON = pytest.mark.parametrize("comparison", COMPARISONS.values(), ids=COMPARISONS.keys())


def journal_of(comparison: Comparison) -> MemoryJournal:
    journal = MemoryJournal()
    for name, opened_at, sent_at in comparison.purchases:
        number, key = f"number of {name}", f"key of {name}"
        journal.write(Entry(number, key, b"{}", opened_at, "bought", name, "1.00", None, sent_at))
    return journal


@ANY_COMPARISON
def test_a_purchase_of_the_period_needs_a_debit(comparison: Comparison) -> None:
    result = reconcile(
        comparison.statement,
        journal_of(comparison),
        since=comparison.period.get("since"),
        until=comparison.period.get("until"),
    )

    assert list(result.purchases_without_debit) == comparison.without_debit
    assert list(result.purchases_at_the_edge) == comparison.at_the_edge
    assert result.is_clean == (not comparison.without_debit)


def test_a_day_may_be_a_date() -> None:
    comparison = Comparison([NOON])
    result = reconcile(
        comparison.statement,
        journal_of(comparison),
        since=date(2026, 10, 31),
        until=date(2026, 10, 31),
    )
    assert result.purchases_without_debit == ("NOON",)


@ANY_WRONG_PERIOD
def test_an_unfinished_or_wrong_period_is_an_error(period: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"is not over|is before|Not a day|Give both"):
        reconcile('{"entries": []}', MemoryJournal(), **period)
