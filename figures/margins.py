"""Sales, cost, margin and value of stock of a period, read from what was counted.

A report reads whole months from `MonthlyMarginSum`, the days around them (at most two months) from
`DailyMarginSum`, and never an order. The month of today is whole: nothing was sold after today.
Lines by day read every day of the period. A report of one account, or by merchant, reads
`MonthlyMargin` and `DailyMargin`, which have a row for each account. Without costs, lines by
merchant read only the sums of each account.
The cost of a code is that of its batch now, converted with the rate of the day of its import and
rounded to an amount of money. If it is not known, neither is the margin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db import connection

from figures.sales import today

MOST_DAYS = 92  # of lines by day
CHART_DAYS = 31  # of a chart with a bar for each day


class By(StrEnum):
    """The dimension by which the report groups its lines."""

    PRODUCT = "product"
    MERCHANT = "merchant"
    SUPPLIER = "supplier"
    BATCH = "batch"
    DAY = "day"
    MONTH = "month"
    KIND = "kind"


# The key of a line, and the name that people read.
KEYS = {
    By.PRODUCT: (
        "CASE WHEN topup.id IS NULL THEN 'product:' || product.id ELSE 'topup:' || topup.id END",
        "coalesce(topup.name, product.name)",
    ),
    By.MERCHANT: ("account.id::text", "account.name"),
    By.SUPPLIER: ("coalesce(batch.supplier, '')", "coalesce(batch.supplier, '')"),
    By.BATCH: ("coalesce(batch.id::text, '')", "coalesce('Batch ' || batch.id, '')"),
    By.DAY: ("day::text", "day::text"),
    By.MONTH: ("to_char(day, 'YYYY-MM')", "to_char(day, 'YYYY-MM')"),
    By.KIND: ("CASE WHEN topup.id IS NULL THEN 'codes' ELSE 'topups' END", "''"),
}
HAVE_STOCK = (By.PRODUCT, By.SUPPLIER, By.BATCH, By.KIND)
COLUMNS = "account_id, currency, shelf_id, topup_product_id, batch_id"
FIGURES = """
    SELECT {columns}, sum(quantity) AS quantity, sum(sold) AS sold, sum(paid_back) AS paid_back,
           0::numeric AS stock
      FROM (SELECT day, {source_columns}, quantity, sold, paid_back FROM figures_daily{suffix}
             WHERE {condition} AND day BETWEEN %(since)s AND %(until)s
               AND NOT day BETWEEN %(whole_since)s AND %(whole_until)s
             UNION ALL
            SELECT day, {source_columns}, quantity, sold, paid_back FROM figures_monthly{suffix}
             WHERE {condition} AND day BETWEEN %(whole_since)s AND %(whole_until)s) AS counted
     GROUP BY {columns}
"""
STOCK = """
    UNION ALL
    SELECT NULL, NULL, shelf_id, NULL, batch_id, 0, 0, 0, codes FROM figures_dailystock
     WHERE day = (SELECT max(day) FROM figures_dailystock WHERE day <= %(until)s)
       AND %(account)s::bigint IS NULL AND %(topup)s::bigint IS NULL
"""
# The rate is looked up once for each batch of a line: there are many more rows than batches.
REPORT = """
    WITH figures AS ({figures}), batches AS (
        SELECT {key} AS key, max({name}) AS name,
               coalesce(figures.currency, account.currency, product.currency) AS currency,
               batch.id AS batch_id,
               sum(quantity) AS quantity, sum(sold) AS sold, sum(paid_back) AS paid_back,
               sum(stock) AS stock,
               coalesce(sum(quantity) FILTER (WHERE topup.id IS NOT NULL), 0) AS topups
          FROM figures
          LEFT JOIN accounts_account AS account ON account.id = figures.account_id
          LEFT JOIN catalogue_shelf AS shelf ON shelf.id = figures.shelf_id
          LEFT JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN topups_topupproduct AS topup ON topup.id = figures.topup_product_id
          LEFT JOIN catalogue_batch AS batch ON batch.id = figures.batch_id
         WHERE (%(product)s::bigint IS NULL OR product.id = %(product)s)
           AND (%(topup)s::bigint IS NULL OR topup.id = %(topup)s)
           AND (%(supplier)s::text IS NULL OR coalesce(batch.supplier, '') = %(supplier)s)
         GROUP BY 1, 3, 4
    ), priced AS MATERIALIZED (
        SELECT batches.*,
               CASE WHEN batch.cost_currency = currency
                    THEN batch.unit_cost
                    ELSE round(batch.unit_cost * (
                             SELECT rate FROM figures_exchangerate AS known
                              WHERE known.currency = batch.cost_currency
                                AND known.into = batches.currency
                                AND day <= (batch.imported_at AT TIME ZONE 'UTC')::date
                              ORDER BY day DESC LIMIT 1), 4)
               END AS cost
          FROM batches
          LEFT JOIN catalogue_batch AS batch ON batch.id = batch_id
    )
    SELECT key, max(name), currency, sum(quantity)::bigint, sum(sold), sum(paid_back),
           coalesce(sum(quantity * cost), 0),
           coalesce(sum(quantity) FILTER (WHERE cost IS NULL), 0)::bigint,
           sum(stock)::bigint, coalesce(sum(stock * cost), 0),
           coalesce(sum(stock) FILTER (WHERE cost IS NULL), 0)::bigint,
           coalesce(sum(sold - paid_back) FILTER (WHERE cost IS NOT NULL), 0),
           sum(topups)::bigint
      FROM priced GROUP BY key, currency
    HAVING sum(quantity) <> 0 OR sum(sold) <> 0 OR sum(paid_back) <> 0 OR sum(stock) <> 0
"""


@dataclass(frozen=True)
class Period:
    """Whole days (UTC) whose figures are read, of one account, product, top-up product or supplier
    if it is given. The supplier of codes without one is an empty text."""

    since: date
    until: date
    account: int | None = None
    product: int | None = None
    supplier: str | None = None
    topup: int | None = None

    @property
    def step(self) -> By:
        """The length of a bar of a chart."""
        return By.DAY if (self.until - self.since).days < CHART_DAYS else By.MONTH

    @property
    def is_of_one_thing(self) -> bool:
        """Whether it is about one product, top-up product or supplier."""
        return (self.product, self.topup, self.supplier) != (None, None, None)

    @property
    def whole_months(self) -> tuple[date, date]:
        """The first days of the first and last month that are part of it with every day; the first
        is after the last if there is none."""
        first = self.since if self.since.day == 1 else _next_month(self.since)
        if self.until >= today():
            return first, _month(self.until)
        return first, _month(_month(self.until + timedelta(days=1)) - timedelta(days=1))


@dataclass(frozen=True)
class Line:
    """The figures of one thing in one currency. `quantity` counts codes or top-ups; of `unknown` of
    them, and of `stock_unknown` codes in stock, nobody stated the cost. `known_net` is the net of
    the others. `topups` of them are top-ups, which have no cost."""

    key: str
    name: str
    currency: str
    quantity: int
    sold: Decimal
    paid_back: Decimal
    known_cost: Decimal
    unknown: int
    stock: int
    known_value: Decimal
    stock_unknown: int
    known_net: Decimal
    topups: int

    @property
    def unknown_codes(self) -> int:
        """The codes whose cost is not known."""
        return self.unknown - self.topups

    @property
    def net(self) -> Decimal:
        """Sales less refunds and credits."""
        return self.sold - self.paid_back

    @property
    def cost(self) -> Decimal | None:
        """None if the cost of a part is not known."""
        return None if self.unknown else self.known_cost

    @property
    def margin(self) -> Decimal | None:
        """None if the cost is not known."""
        return None if self.cost is None else self.net - self.cost

    @property
    def known_margin(self) -> Decimal:
        """The margin of those whose cost is known."""
        return self.known_net - self.known_cost

    @property
    def stock_value(self) -> Decimal | None:
        """The cost of the codes in stock; None if the cost of any of them is not known."""
        return None if self.stock_unknown else self.known_value


def read_lines(period: Period, *, by: By, costs: bool = True) -> list[Line]:
    """The lines of a report, by currency; those with the largest sales first, days and months in
    their order.

    Lines by merchant without `costs` read fewer rows, and no cost is known. A supplier or a product
    needs the rows of each account in any case.
    """
    key, name = KEYS[by]
    columns = f"{COLUMNS}, day" if by in (By.DAY, By.MONTH) else COLUMNS
    rows = _rows(period, by, costs=costs)
    figures = FIGURES.format(columns=columns, **rows) + (STOCK if by in HAVE_STOCK else "")
    first, last = period.whole_months
    if by is By.DAY or first > last:  # no month: of a day after the last one
        first, last = period.until + timedelta(days=1), period.since - timedelta(days=1)
    else:
        last = _next_month(last) - timedelta(days=1)
    values: dict[str, Any] = {**vars(period), "whole_since": first, "whole_until": last}
    with connection.cursor() as cursor:
        cursor.execute(REPORT.format(figures=figures, key=key, name=name), values)
        lines = [Line(*row) for row in cursor]
    if by in (By.DAY, By.MONTH):
        return sorted(lines, key=lambda line: (line.currency, line.key))
    return sorted(lines, key=lambda line: (line.currency, -line.sold, -line.stock, line.key))


def _rows(period: Period, by: By, *, costs: bool) -> dict[str, str]:
    """The suffix of the tables that a report reads, their columns, and which rows it reads."""
    conditions = {
        "account": "account_id = %(account)s",
        "product": "shelf_id = ANY (ARRAY(SELECT id FROM catalogue_shelf"
        " WHERE product_id = %(product)s))",
        "topup": "topup_product_id = %(topup)s",
    }
    condition = " AND ".join(
        text for name, text in conditions.items() if getattr(period, name) is not None
    )
    if by is By.MERCHANT and not costs and not period.is_of_one_thing:
        condition = condition or "account_id = ANY (ARRAY(SELECT id FROM accounts_account))"
        return {"suffix": "marginsum", "source_columns": COLUMNS, "condition": condition}
    if by is By.MERCHANT or period.account is not None:
        columns = COLUMNS.replace("currency", "NULL AS currency")
        return {"suffix": "margin", "source_columns": columns, "condition": condition or "true"}
    condition = " AND ".join(filter(None, ("account_id IS NULL", condition)))
    return {"suffix": "marginsum", "source_columns": COLUMNS, "condition": condition}


def add_up(lines: Iterable[Line]) -> dict[str, Line]:
    """The sum of the lines of each currency."""
    sums: dict[str, Line] = {}
    for line in lines:
        before = vars(sums.get(line.currency, EMPTY))
        sums[line.currency] = Line(
            "", "", line.currency, *(before[name] + getattr(line, name) for name in NUMBERS)
        )
    return sums


def without_gaps(lines: Iterable[Line], period: Period) -> list[Line]:
    """The lines of one currency for each day of the period, or for each month from the first line
    to the last; those without figures are empty."""
    known = {line.key: line for line in lines}
    if period.step is By.DAY:
        days = (period.until - period.since).days + 1
        keys = [f"{period.since + timedelta(days=number)}" for number in range(days)]
    else:
        month, keys = days_of_month(min(known))[0], list[str]()
        while (key := f"{month:%Y-%m}") <= max(known):
            keys.append(key)
            month = _next_month(month)
    return [known.get(key, replace(EMPTY, key=key, name=key)) for key in keys]


EMPTY = Line("", "", "", 0, Decimal(0), Decimal(0), Decimal(0), 0, 0, Decimal(0), 0, Decimal(0), 0)
NUMBERS = list(vars(EMPTY))[3:]


def days_of_month(key: str) -> tuple[date, date]:
    """The first and the last day of a month, which is the key of a line such as `2026-11`."""
    first = date.fromisoformat(f"{key}-01")
    return first, _next_month(first) - timedelta(days=1)


def _month(day: date) -> date:
    return day.replace(day=1)


def _next_month(day: date) -> date:
    return _month(_month(day) + timedelta(days=31))
