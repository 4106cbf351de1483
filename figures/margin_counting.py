"""Counts orders, refunds and credits by day, account, thing and batch, after they were made.

A purchase writes nothing for these figures. Every client numbers its orders without gaps in the
order of their commits, and a wallet's entries get their ids under the wallet's lock. So one number
for each client, and one for each wallet and kind of entry, says what is counted. A statement adds
what follows and moves the number on: each order and each entry is counted once, however often the
task runs and wherever it is killed (docs/decisions/0086-margins.md).
"""

from django.db import connection

from figures.sales_counting import BEHIND, NEW_CLIENTS, count

LOCK = "hashtext('figures.count_margins')"
# Of one run, as in figures/sales_counting.py. Each code is looked up, and an order may have 100.
ORDERS, CODES, ENTRIES = 10_000, 20_000, 500

# The codes of each order by batch: a code's batch is the last one that begins at or before its id.
# `part` is the batch's part of the order's `amount`: the rounded sum of the parts up to it, less
# that of the parts before it. So the parts add up to the amount.
PARTS = """
    coded AS MATERIALIZED (
        SELECT moved.pk, batch.id AS batch_id, count(*) AS codes
          FROM moved
          JOIN LATERAL (SELECT id FROM catalogue_vouchercode
                         WHERE order_id = moved.order_id OFFSET 0) AS code ON true
          LEFT JOIN LATERAL (SELECT id, last_code FROM catalogue_batch WHERE first_code <= code.id
                              ORDER BY first_code DESC LIMIT 1) AS batch ON last_code >= code.id
         WHERE moved.shelf_id IS NOT NULL
         GROUP BY 1, 2
    ), share AS (
        SELECT moved.*, batch_id, coalesce(codes, quantity) AS codes,
               round(amount * sum(coalesce(codes, quantity)) OVER up_to / quantity, 4)
               - round(amount * (sum(coalesce(codes, quantity)) OVER up_to
                                 - coalesce(codes, quantity)) / quantity, 4) AS part
          FROM moved LEFT JOIN coded USING (pk)
        WINDOW up_to AS (PARTITION BY pk ORDER BY batch_id NULLS LAST)
    )
"""
ADD = """
        INSERT INTO figures_{table}margin AS stored
               (day, account_id, shelf_id, topup_product_id, batch_id, quantity, sold, paid_back)
        SELECT {day}, account_id, shelf_id, topup_product_id, batch_id,
               sum(CASE WHEN is_sale THEN codes ELSE 0 END),
               sum(CASE WHEN is_sale THEN part ELSE 0 END),
               sum(CASE WHEN is_sale THEN 0 ELSE part END)
          FROM share GROUP BY 1, 2, 3, 4, 5
            ON CONFLICT (day, account_id, shelf_id, topup_product_id, batch_id) DO UPDATE
           SET quantity = stored.quantity + EXCLUDED.quantity,
               sold = stored.sold + EXCLUDED.sold,
               paid_back = stored.paid_back + EXCLUDED.paid_back
"""
ADD_PARTS = f"""
    by_day AS ({ADD.format(table="daily", day="day")}),
    by_month AS ({ADD.format(table="monthly", day="date_trunc('month', day)::date")})
"""
# OFFSET 0 keeps the planner from joining a whole table.
COUNT_ORDERS = """
    WITH {behind}, sales AS (
        SELECT sale.id AS pk, sale.id AS order_id, true AS is_sale, sale.client_id, sale.number,
               (sale.created_at AT TIME ZONE 'UTC')::date AS day, client.account_id,
               sale.shelf_id, fulfilment.product_id AS topup_product_id,
               sale.quantity, sale.total_price AS amount,
               sum(sale.quantity) OVER (ORDER BY behind.up_to, sale.number
                                        ROWS UNBOUNDED PRECEDING) - sale.quantity AS codes_before
          FROM behind
          JOIN accounts_apiclient AS client ON client.id = behind.client_id
          JOIN LATERAL (SELECT * FROM orders_order AS item
                         WHERE item.client_id = behind.client_id
                           AND item.number > behind.first AND item.number <= behind.last
                        OFFSET 0) AS sale ON true
          LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
    ), moved AS MATERIALIZED (
        SELECT * FROM sales WHERE codes_before < %(codes)s
    ), {parts}, spent AS (
        INSERT INTO figures_dailyspending AS stored (day, client_id, amount)
        SELECT day, client_id, sum(amount) FROM moved GROUP BY 1, 2
            ON CONFLICT (client_id, day) DO UPDATE SET amount = stored.amount + EXCLUDED.amount
    ), counted AS (
        UPDATE figures_countedmargin AS counted SET orders = newest.number
          FROM (SELECT client_id, max(number) AS number, count(*) AS orders FROM moved GROUP BY 1)
               AS newest
         WHERE counted.client_id = newest.client_id
        RETURNING newest.orders AS number
    )
    SELECT coalesce(sum(number), 0)::bigint FROM counted
"""
NEW_WALLETS = """
    INSERT INTO figures_countedpayback (wallet_id, kind, last_entry)
    SELECT account_id, kind, 0
      FROM wallets_wallet, unnest(ARRAY['refund', 'credit']) AS kind
     WHERE NOT EXISTS (SELECT FROM figures_countedpayback AS counted
                        WHERE counted.wallet_id = account_id AND counted.kind = kind.kind)
        ON CONFLICT DO NOTHING
"""
COUNT_PAYBACKS = """
    WITH entry AS MATERIALIZED (
        SELECT counted.id AS counted_id, entry.id, entry.order_reference, entry.amount,
               (entry.created_at AT TIME ZONE 'UTC')::date AS day, counted.wallet_id
          FROM figures_countedpayback AS counted
          JOIN LATERAL (SELECT * FROM wallets_ledgerentry AS item
                         WHERE item.wallet_id = counted.wallet_id AND item.kind = counted.kind
                           AND item.kind <> 'purchase' AND item.id > counted.last_entry
                         ORDER BY item.id LIMIT %(rows)s) AS entry ON true
         LIMIT %(rows)s
    ), moved AS MATERIALIZED (
        SELECT entry.id AS pk, sale.id AS order_id, false AS is_sale, entry.day,
               entry.wallet_id AS account_id, sale.shelf_id,
               fulfilment.product_id AS topup_product_id, sale.quantity, entry.amount
          FROM entry
          JOIN LATERAL (SELECT * FROM orders_order AS item
                         WHERE item.reference = entry.order_reference OFFSET 0) AS sale ON true
          LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
    ), {parts}, counted AS (
        UPDATE figures_countedpayback AS counted SET last_entry = newest.id
          FROM (SELECT counted_id, max(id) AS id, count(*) AS number FROM entry GROUP BY 1)
               AS newest
         WHERE counted.id = newest.counted_id
        RETURNING newest.number
    )
    SELECT coalesce(sum(number), 0)::bigint FROM counted
"""


def count_margins() -> int:
    """Counts orders, refunds and credits that are not counted yet; returns how many.

    Counts at most ORDERS orders, fewer if they have more than CODES codes, and at most ENTRIES
    refunds and credits. Does nothing while another run does.
    """
    counted = "figures_countedmargin"
    with connection.cursor() as cursor:
        cursor.execute(NEW_CLIENTS.format(counted=counted))
        cursor.execute(NEW_WALLETS)
    parts = f"{PARTS}, {ADD_PARTS}"
    orders = COUNT_ORDERS.format(behind=BEHIND.format(counted=counted), parts=parts)
    paybacks = COUNT_PAYBACKS.format(parts=parts)
    return count(orders, LOCK, rows=ORDERS, codes=CODES) + count(paybacks, LOCK, rows=ENTRIES)
