"""Checks of `reconcile` over the rows of a period, instead of all rows.

The SQL of a check holds, as comments, the conditions that choose the rows of a period:

    /*period AND sale.id IN_IDS orders_order*/      the ids that the table gave out in the period
    /*period AND day IN_DAYS*/                      a date
    /*period AND day IN_MONTHS*/                    a date in a month that the period touches
    /*period AND sale.created_at IN_TIMES*/         a time

Over all rows the comments stay comments. A check whose SQL reads more than it must even so, such as
one with window functions, has other SQL for a period (`Check.of_period`).
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from re import Match

from core.backoffice.declarations import Check
from core.database.ids import MARGIN, find_id_in

COMMENT = re.compile(r"/\*period(.*?)\*/", re.DOTALL)
IDS = re.compile(r"(\S+) IN_IDS (\w+)")
TIMES = re.compile(r"(\S+) IN_(TIMES|DAYS|MONTHS)")


@dataclass
class Period:
    """The time from `since` on, until `until`, if these are set: both are a midnight in UTC."""

    since: datetime | None
    until: datetime | None = None
    _ids: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def sql_of(self, check: Check) -> str:
        """The SQL of the check for the rows of the period; empty if it has none."""
        if not is_of_periods(check):
            return ""
        sql = COMMENT.sub(r"\1", check.of_period or check.sql)
        return IDS.sub(self._condition_on_ids, TIMES.sub(self._condition_on_times, sql))

    def ids_of(self, table: str) -> tuple[int, int | None]:
        """The first id of the period, and the first after it; beyond the period by MARGIN. Without
        a beginning, the first is 1."""
        if table not in self._ids:
            first = find_id_in(table, self.since - MARGIN) if self.since else 1
            end = find_id_in(table, self.until + MARGIN) if self.until else None
            self._ids[table] = (first, end)
        return self._ids[table]

    def condition(self, column: str, table: str) -> str:
        """The SQL condition for the ids of the period in a column."""
        first, end = self.ids_of(table)
        return _range_condition(column, str(first), None if end is None else str(end))

    def _condition_on_ids(self, match: Match[str]) -> str:
        return self.condition(match[1], match[2])

    def _condition_on_times(self, match: Match[str]) -> str:
        def literal(moment: datetime) -> str:
            if match[2] == "TIMES":
                return f"timestamptz '{moment.isoformat()}'"
            return f"date '{moment.date()}'"

        whole = self._whole_months() if match[2] == "MONTHS" else self
        since = None if whole.since is None else literal(whole.since)
        until = None if whole.until is None else literal(whole.until)
        return _range_condition(match[1], since, until)

    def _whole_months(self) -> "Period":
        """From the first day of the first month, until that after the last month."""
        last = self.until and self.until - timedelta(days=1)
        after = last and (last.replace(day=1) + timedelta(days=31)).replace(day=1)
        return Period(self.since and self.since.replace(day=1), after)


def is_of_periods(check: Check) -> bool:
    """Whether the check can look at the rows of a period."""
    return bool(check.of_period) or "/*period" in check.sql


def tables_of(check: Check) -> set[str]:
    """The tables of whose rows the check can look at those of a period."""
    return {table for _, table in IDS.findall(check.sql + check.of_period)}


def _range_condition(column: str, first: str | None, end: str | None) -> str:
    lower = "" if first is None else f"{column} >= {first}"
    upper = "" if end is None else f"{column} < {end}"
    return f"({' AND '.join(filter(None, (lower, upper)))})"
