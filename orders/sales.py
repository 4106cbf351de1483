"""Sales by day, product and account: counted after the purchase, and read without reading orders.

A purchase writes nothing for these figures. Every client numbers its orders without gaps, in the
order of their commits, so `CountedSales` needs only the last number that was counted: a run adds
the orders after it and moves the number on, in one statement. Each order is counted once, however
often the task runs and wherever it is killed (docs/decisions/0058-sales-at-a-glance.md).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from django.db import connection, transaction

from accounts.models import Account

LOCK = "hashtext('orders.count_sales')"
CLIENTS, ORDERS = 20, 1000  # of one statement: clients, and orders of each
SECONDS = 15.0  # of one run; the next one goes on
PERIODS = (1, 7, 30)  # days

NEW_CLIENTS = """
    INSERT INTO orders_countedsales (client_id, orders)
    SELECT client_id, 0 FROM orders_clientcounter AS counter
     WHERE NOT EXISTS (SELECT FROM orders_countedsales AS counted
                        WHERE counted.client_id = counter.client_id)
        ON CONFLICT DO NOTHING
"""
# OFFSET 0 keeps the planner from joining a whole table of orders.
COUNT = """
    WITH behind AS MATERIALIZED (
        SELECT counted.client_id, counted.orders AS first,
               least(counter.orders, counted.orders + %(orders)s) AS last
          FROM orders_countedsales AS counted
          JOIN orders_clientcounter AS counter ON counter.client_id = counted.client_id
         WHERE counter.orders > counted.orders
         ORDER BY counted.client_id LIMIT %(clients)s
    ), sold AS (
        SELECT (sale.created_at AT TIME ZONE 'UTC')::date AS day, client.account_id,
               sale.shelf_id, fulfilment.product_id AS topup_product_id, count(*) AS orders,
               sum(sale.quantity) AS quantity, sum(sale.total_price) AS amount
          FROM behind
          JOIN accounts_apiclient AS client ON client.id = behind.client_id
          JOIN LATERAL (SELECT * FROM orders_order AS item
                         WHERE item.client_id = behind.client_id
                           AND item.number > behind.first AND item.number <= behind.last
                        OFFSET 0) AS sale ON true
          LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
         GROUP BY 1, 2, 3, 4
    ), added AS (
        INSERT INTO orders_dailysales AS stored
               (day, account_id, shelf_id, topup_product_id, orders, quantity, amount)
        SELECT * FROM sold
            ON CONFLICT (day, account_id, shelf_id, topup_product_id) DO UPDATE
           SET orders = stored.orders + EXCLUDED.orders,
               quantity = stored.quantity + EXCLUDED.quantity,
               amount = stored.amount + EXCLUDED.amount
    ), moved AS (
        UPDATE orders_countedsales AS counted SET orders = behind.last
          FROM behind WHERE counted.client_id = behind.client_id
        RETURNING behind.last - behind.first AS number
    )
    SELECT coalesce(sum(number), 0)::bigint FROM moved
"""


def count_sales() -> int:
    """Adds the orders that are not counted yet to DailySales; returns how many. Runs for at most
    about 15 seconds, and does nothing while another run does."""
    deadline = time.monotonic() + SECONDS
    total = 0
    while number := _count_some():
        total += number
        if time.monotonic() > deadline:
            break
    return total


@transaction.atomic
def _count_some() -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({LOCK})")
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute("SET LOCAL enable_seqscan = off")  # as in orders/sql/purchase_vouchers.sql
        cursor.execute(NEW_CLIENTS)
        cursor.execute(COUNT, {"clients": CLIENTS, "orders": ORDERS})
        (number,) = cursor.fetchone()
    return int(number)


# --- Reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figures:
    """Sales of one period, and of the period of the same length before it."""

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
    """What a line of sales is about."""

    PRODUCT = "product"
    TOP_UP = "topup"
    ACCOUNT = "account"


@dataclass(frozen=True)
class Line:
    """The sales of one product or account, in one currency. `pk` is its id."""

    kind: Kind
    pk: int
    name: str
    currency: str
    figures: Figures


BY_DAY = """
    SELECT account.currency, day, sum(orders)::bigint, sum(amount)
      FROM (SELECT account_id, day, sum(orders) AS orders, sum(amount) AS amount
              FROM orders_dailysales
             WHERE day BETWEEN %(since)s AND %(today)s
               AND (%(account)s::bigint IS NULL OR account_id = %(account)s)
             GROUP BY account_id, day) AS sales
      JOIN accounts_account AS account ON account.id = sales.account_id
     GROUP BY account.currency, day
"""
BY_THING = """
    SELECT CASE WHEN account.id IS NOT NULL THEN 'account'
                WHEN topup.id IS NOT NULL THEN 'topup' ELSE 'product' END,
           coalesce(account.id, topup.id, product.id),
           coalesce(account.name, topup.name, product.name),
           account.currency,
           coalesce(sum(orders), 0)::bigint, coalesce(sum(amount), 0),
           coalesce(sum(amount_before), 0)
      FROM (SELECT account_id, shelf_id, topup_product_id,
                   sum(orders) FILTER (WHERE day >= %(middle)s) AS orders,
                   sum(amount) FILTER (WHERE day >= %(middle)s) AS amount,
                   sum(amount) FILTER (WHERE day < %(middle)s) AS amount_before
              FROM orders_dailysales
             WHERE day BETWEEN %(since)s AND %(today)s
             GROUP BY account_id, shelf_id, topup_product_id) AS sales
      JOIN accounts_account AS account ON account.id = sales.account_id
      LEFT JOIN catalogue_shelf AS shelf ON shelf.id = sales.shelf_id
      LEFT JOIN catalogue_product AS product ON product.id = shelf.product_id
      LEFT JOIN topups_topupproduct AS topup ON topup.id = sales.topup_product_id
     GROUP BY GROUPING SETS ((account.currency, account.id, account.name),
                             (account.currency, product.id, product.name, topup.id, topup.name))
     ORDER BY 6 DESC, 7 DESC, 3
"""


def today() -> date:
    """The date in UTC: the day to which a purchase counts now."""
    return datetime.now(UTC).date()


def sales_by_period(*, day: date, account: Account | None = None) -> dict[str, dict[int, Figures]]:
    """The sales of the last 1, 7 and 30 days, `day` being the last, by currency and length.

    Reads one row for each day on which an account bought a thing, never an order.
    """
    longest = max(PERIODS)
    values = {
        "since": day - timedelta(days=2 * longest - 1),
        "today": day,
        "account": account.pk if account else None,
    }
    found: dict[str, dict[int, Figures]] = {}
    for currency, sold_on, orders, amount in _rows(BY_DAY, values):
        figures = found.setdefault(currency, dict.fromkeys(PERIODS, Figures()))
        age = (day - sold_on).days
        for length in PERIODS:
            if age < length:
                figures[length] += Figures(orders, amount)
            elif age < 2 * length:
                figures[length] += Figures(amount_before=amount)
    return found


def sales_by_thing(*, day: date, days: int) -> list[Line]:
    """The sales of each product and each account in the last `days` days, the largest first.

    Includes what sold only in the period before.
    """
    values = {
        "since": day - timedelta(days=2 * days - 1),
        "middle": day - timedelta(days=days - 1),
        "today": day,
    }
    return [
        Line(Kind(kind), pk, name, currency, Figures(*figures))
        for kind, pk, name, currency, *figures in _rows(BY_THING, values)
    ]


def _rows(sql: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor)
