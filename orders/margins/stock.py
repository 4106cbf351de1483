"""Counts the codes in stock of each batch, for the value of stock on a day."""

from django.db import connection, transaction

LOCK = "hashtext('orders.count_stock')"
# A code belongs to a batch if it is after as many first codes as the batch has places, and after
# the last codes of those before it. A join by ranges would be slow.
COUNT = """
    WITH batches AS MATERIALIZED (
        SELECT id, first_code, last_code, row_number() OVER (ORDER BY first_code)::int AS place
          FROM catalogue_batch
    ), stock AS (
        SELECT shelf_id, count(*) AS codes,
               width_bucket(id, ARRAY(SELECT first_code FROM batches ORDER BY 1)) AS begun,
               width_bucket(id, ARRAY(SELECT last_code + 1 FROM batches ORDER BY 1)) AS ended
          FROM catalogue_vouchercode
         WHERE order_id IS NULL AND hold_id IS NULL GROUP BY shelf_id, begun, ended
    ), gone AS (
        DELETE FROM orders_dailystock AS stored
         WHERE day = (now() AT TIME ZONE 'UTC')::date
    )
    SELECT shelf_id, batches.id, sum(codes)::bigint
      FROM stock LEFT JOIN batches ON place = begun AND begun = ended + 1
     GROUP BY shelf_id, batches.id
"""
STORE = """
    INSERT INTO orders_dailystock (day, shelf_id, batch_id, codes)
    SELECT (now() AT TIME ZONE 'UTC')::date, * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[])
"""


@transaction.atomic
def count_stock() -> int:
    """Counts the codes in stock today, in place of what was counted earlier today; returns how
    many. Does nothing while another run does."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({LOCK})")
        if not cursor.fetchone()[0]:
            return 0
        cursor.execute(COUNT)
        rows = cursor.fetchall()
        if rows:
            cursor.execute(STORE, [list(column) for column in zip(*rows, strict=True)])
    return sum(codes for _, _, codes in rows)
