"""Sales by day, product and account, read from daily counts. Spend adds the orders not counted yet.

figures/sales_counting.py counts orders, and figures/margin_counting.py refunds and credits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db import connection

from accounts.models import Account
from core.database.functions import statement_timeout

PERIODS = (1, 7, 30)  # days
SPEND_TIMEOUT_SECONDS = 3


@dataclass(frozen=True)
class Figures:
    """Sales of one period, and of the period of the same length before it, net of the refunds and
    credits that were booked in each."""

    orders: int = 0
    amount: Decimal = Decimal(0)
    amount_before: Decimal = Decimal(0)

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.orders + other.orders,
            self.amount + other.amount,
            self.amount_before + other.amount_before,
        )


class Kind(StrEnum):
    """The kind of thing or account whose sales a row shows."""

    PRODUCT = "product"
    TOP_UP = "topup"
    ACCOUNT = "account"


@dataclass(frozen=True)
class SalesRow:
    """The sales of one product or account, in one currency. `pk` is its id."""

    kind: Kind
    pk: int
    name: str
    currency: str
    figures: Figures


# What was paid back is in few rows, so it has no sums of everything.
NET = """(
    SELECT day, currency, account_id, shelf_id, topup_product_id, orders, amount
      FROM figures_dailytotal WHERE {sums}
     UNION ALL
    SELECT day, currency, account_id, shelf_id, topup_product_id, 0, -paid_back
      FROM figures_dailymarginsum WHERE paid_back <> 0) AS net"""
BY_DAY = f"""
    SELECT currency, day, sum(orders)::bigint, sum(amount)
      FROM {NET}
     WHERE day BETWEEN %(since)s AND %(today)s AND account_id {{account}}
     GROUP BY currency, day
"""  # noqa: S608  parts of ours
OF_ALL = BY_DAY.format(
    sums="account_id IS NULL AND shelf_id IS NULL AND topup_product_id IS NULL", account="IS NULL"
)
OF_ONE = BY_DAY.format(sums="true", account="= %(account)s")
BY_THING = f"""
    SELECT CASE WHEN account.id IS NOT NULL THEN 'account'
                WHEN topup.id IS NOT NULL THEN 'topup' ELSE 'product' END,
           coalesce(account.id, topup.id, product.id),
           coalesce(account.name, topup.name, product.name),
           sales.currency,
           coalesce(sum(orders), 0)::bigint, coalesce(sum(amount), 0),
           coalesce(sum(amount_before), 0)
      FROM (SELECT currency, account_id, shelf_id, topup_product_id,
                   sum(orders) FILTER (WHERE day >= %(middle)s) AS orders,
                   sum(amount) FILTER (WHERE day >= %(middle)s) AS amount,
                   sum(amount) FILTER (WHERE day < %(middle)s) AS amount_before
              FROM {NET.format(sums="num_nonnulls(account_id, shelf_id, topup_product_id) = 1")}
             WHERE day BETWEEN %(since)s AND %(today)s
             GROUP BY currency, account_id, shelf_id, topup_product_id) AS sales
      LEFT JOIN accounts_account AS account ON account.id = sales.account_id
      LEFT JOIN catalogue_shelf AS shelf ON shelf.id = sales.shelf_id
      LEFT JOIN catalogue_product AS product ON product.id = shelf.product_id
      LEFT JOIN topups_topupproduct AS topup ON topup.id = sales.topup_product_id
     GROUP BY sales.currency, account.id, product.id, topup.id
     ORDER BY 6 DESC, 7 DESC, 3
"""  # noqa: S608  parts of ours

# Counts and their position change together, so each order is in one of the two halves. The number
# of the last order bounds the second one for the planner, which would otherwise read a whole table.
OF_ACCOUNT = """
    SELECT sold.day,
           coalesce(product.name, topup.name) || coalesce(' / ' || variation.name, '') AS name,
           sum(sold.orders)::bigint, sum(sold.amount)
      FROM (SELECT day, shelf_id, topup_product_id, orders, amount
              FROM figures_dailysales
             WHERE account_id = %(account)s AND day BETWEEN %(since)s AND %(until)s
             UNION ALL
            SELECT (sale.created_at AT TIME ZONE 'UTC')::date, sale.shelf_id,
                   fulfilment.product_id, 1, sale.total_price
              FROM accounts_apiclient AS client
              JOIN orders_clientcounter AS counter ON counter.client_id = client.id
              LEFT JOIN figures_countedsales AS counted ON counted.client_id = client.id
              JOIN LATERAL (SELECT * FROM orders_order AS item
                             WHERE item.client_id = client.id
                               AND item.number > coalesce(counted.orders, 0)
                               AND item.number <= counter.orders
                            OFFSET 0) AS sale ON true
              LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
             WHERE client.account_id = %(account)s
               AND (sale.created_at AT TIME ZONE 'UTC')::date
                   BETWEEN %(since)s AND %(until)s) AS sold
      LEFT JOIN catalogue_shelf AS shelf ON shelf.id = sold.shelf_id
      LEFT JOIN catalogue_product AS product ON product.id = shelf.product_id
      LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
      LEFT JOIN topups_topupproduct AS topup ON topup.id = sold.topup_product_id
     GROUP BY sold.day, sold.shelf_id, sold.topup_product_id, 2
     ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Spend:
    """The cost of the orders of one product on one day (UTC)."""

    day: date
    product: str
    orders: int
    amount: Decimal


def today() -> date:
    """The date in UTC: the day to which a purchase counts now."""
    return datetime.now(UTC).date()


def sales_by_period(*, day: date, account: Account | None = None) -> dict[str, dict[int, Figures]]:
    """The net sales of the last 1, 7 and 30 days, `day` being the last, by currency and length.

    Reads a row of DailyTotal for each day and currency, and the rows of DailyMarginSum with
    something paid back. Never reads an order.
    """
    longest = max(PERIODS)
    values = {
        "since": day - timedelta(days=2 * longest - 1),
        "today": day,
        "account": account.pk if account else None,
    }
    sales: dict[str, dict[int, Figures]] = {}
    for currency, sold_on, orders, amount in _rows(OF_ONE if account else OF_ALL, values):
        figures = sales.setdefault(currency, dict.fromkeys(PERIODS, Figures()))
        age = (day - sold_on).days
        for length in PERIODS:
            if age < length:
                figures[length] += Figures(orders, amount)
            elif age < 2 * length:
                figures[length] += Figures(amount_before=amount)
    return sales


def net_by_day(*, day: date, days: int) -> dict[str, dict[date, Decimal]]:
    """The net sales of each of the last `days` days, by currency, read as sales_by_period does."""
    first = day - timedelta(days=days - 1)
    values = {"since": first, "today": day, "account": None}
    net: dict[str, dict[date, Decimal]] = {}
    for currency, sold_on, _orders, amount in sorted(_rows(OF_ALL, values)):
        empty = {first + timedelta(days=number): Decimal(0) for number in range(days)}
        net.setdefault(currency, empty)[sold_on] = amount
    return net


def spend_of_account(account: Account, *, since: date, until: date) -> list[Spend]:
    """The sums that the account spent from a day (UTC) to another, inclusive, by day and product.

    Refunds and credits are not subtracted. Reads a row for each day and product, and the orders
    that are not counted yet: about ten seconds of them while the scheduler and a worker run. Raises
    StatementTimeout if there are too many.
    """
    values = {"account": account.pk, "since": since, "until": until}
    with statement_timeout(SPEND_TIMEOUT_SECONDS):
        return [Spend(*row) for row in _rows(OF_ACCOUNT, values)]


def sales_by_thing(*, day: date, days: int) -> list[SalesRow]:
    """The net sales of each product and each account in the last `days` days, the largest first.

    Includes what sold only in the period before.
    """
    values = {
        "since": day - timedelta(days=2 * days - 1),
        "middle": day - timedelta(days=days - 1),
        "today": day,
    }
    return [
        SalesRow(Kind(kind), pk, name, currency, Figures(*figures))
        for kind, pk, name, currency, *figures in _rows(BY_THING, values)
    ]


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor)
