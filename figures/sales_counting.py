"""Counts orders as sales by day, after their purchase.

A purchase writes nothing for these figures. Every client numbers its orders without gaps, in the
order of their commits, so `CountedSales` needs only the last number that was counted: a run adds
the orders after it and moves the number on, in one statement. Each order is counted once, however
often the task runs and wherever it is killed (docs/decisions/0058-sales-at-a-glance.md).
"""

from django.db import connection, transaction

LOCK = "hashtext('figures.count_sales')"
# Of one run. On two cores, a purchase beside a run takes half as long again, and so many orders
# take 31 ms. So one run in ten seconds meets less than one purchase in a hundred.
ORDERS = 20_000

NEW_CLIENTS = """
    INSERT INTO {counted} (client_id, orders)
    SELECT client_id, 0 FROM orders_clientcounter AS counter
     WHERE NOT EXISTS (SELECT FROM {counted} AS counted
                        WHERE counted.client_id = counter.client_id)
        ON CONFLICT DO NOTHING
"""
# The ranges of orders that a statement counts. Clients with the fewest uncounted orders come first,
# so that the backlog of one client does not delay the figures of all others. `up_to` adds up the
# uncounted orders of a client and of those before it.
BEHIND = """
    late AS (
        SELECT counted.client_id, counted.orders AS first,
               counter.orders - counted.orders AS uncounted,
               (sum(counter.orders - counted.orders) OVER fewest_first)::bigint AS up_to
          FROM {counted} AS counted
          JOIN orders_clientcounter AS counter ON counter.client_id = counted.client_id
         WHERE counter.orders > counted.orders
        WINDOW fewest_first AS (ORDER BY counter.orders - counted.orders, counted.client_id
                                ROWS UNBOUNDED PRECEDING)
    ), behind AS MATERIALIZED (
        SELECT client_id, up_to, first,
               first + least(uncounted, %(rows)s - up_to + uncounted) AS last
          FROM late WHERE up_to - uncounted < %(rows)s
    )
"""
# OFFSET 0 keeps the planner from joining a whole table of orders.
COUNT = """
    WITH {behind}, sold AS (
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
        INSERT INTO figures_dailysales AS stored
               (day, account_id, shelf_id, topup_product_id, orders, quantity, amount)
        SELECT * FROM sold
            ON CONFLICT (day, account_id, shelf_id, topup_product_id) DO UPDATE
           SET orders = stored.orders + EXCLUDED.orders,
               quantity = stored.quantity + EXCLUDED.quantity,
               amount = stored.amount + EXCLUDED.amount
    ), moved AS (
        UPDATE figures_countedsales AS counted SET orders = behind.last
          FROM behind WHERE counted.client_id = behind.client_id
        RETURNING behind.last - behind.first AS number
    )
    SELECT coalesce(sum(number), 0)::bigint FROM moved
"""


def count_sales() -> int:
    """Adds orders that are not counted yet to DailySales; returns how many, at most ORDERS. Does
    nothing while another run does."""
    counted = "figures_countedsales"
    with connection.cursor() as cursor:
        cursor.execute(NEW_CLIENTS.format(counted=counted))
    return count(COUNT.format(behind=BEHIND.format(counted=counted)), LOCK, rows=ORDERS)


@transaction.atomic
def count(statement: str, lock: str, **limits: int) -> int:
    """Runs a statement that counts rows, with its limits; returns how many it counted.

    Returns 0 while another transaction holds the lock. The commit does not wait for the disk that
    purchases need: the next run repeats what a crash loses.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT pg_try_advisory_xact_lock({lock}),"
            " set_config('synchronous_commit', 'off', true),"
            " set_config('enable_seqscan', 'off', true)"  # as in orders/sql/purchase_vouchers.sql
        )
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(statement, limits)
        (number,) = cursor.fetchone()
    return int(number)
