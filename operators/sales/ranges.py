"""Ranges of days with a name, such as last month, which pages of figures offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.urls import reverse

from core.texts import lazy

# The first day of the range that a day is in.
FIRST: dict[str, Callable[[date], date]] = {
    "day": lambda day: day,
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=1 + (day.month - 1) // 3 * 3, day=1),
    "year": lambda day: day.replace(month=1, day=1),
}
NAMES = {
    "day": (lazy("Today"), lazy("Yesterday")),
    "week": (lazy("This week"), lazy("Last week")),
    "month": (lazy("This month"), lazy("Last month")),
    "quarter": (lazy("This quarter"), lazy("Last quarter")),
    "year": (lazy("This year"), lazy("Last year")),
}


@dataclass(frozen=True)
class Range:
    """A range with a name. The one that `today` is in ends today."""

    name: str
    since: date
    until: date


def named_ranges(today: date) -> list[Range]:
    """Each range that today is in, followed by the whole one before it."""
    found = []
    for kind, first_day in FIRST.items():
        since = first_day(today)
        last = since - timedelta(days=1)
        name, name_before = NAMES[kind]
        found += [Range(name, since, today), Range(name_before, first_day(last), last)]
    return found


def links(
    page: str, query: Mapping[str, Any], *, since: date | None, until: date | None, today: date
) -> list[dict[str, Any]]:
    """The ranges as links to the page, for `admin/ranges.html`. The chosen one is marked.

    query: the other parameters of the address, which stay.
    """
    offered = named_ranges(today)
    chosen = next((one for one in offered if (one.since, one.until) == (since, until)), None)
    return [
        {
            "name": one.name,
            "url": reverse(page, query={**query, "since": one.since, "until": one.until}),
            "chosen": one is chosen,
        }
        for one in offered
    ]
