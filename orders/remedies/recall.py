"""Recalls: the merchants that bought codes of a batch, and in which orders."""

from collections.abc import Iterator
from typing import Any

from django.db import connection

from catalogue.models import Batch

# The codes of a batch are a range of their primary keys, in the order of their sale. The inner
# `OFFSET 0` has PostgreSQL look up each order: for many codes it would read all orders. The outer
# one has it read the clients once, and not for each order.
ORDERS = """
    SELECT sale.id AS order_id, sale.reference, sale.created_at, account.id AS account_id,
           coalesce(account.name, '') AS account, client.name AS client,
           (SELECT count(*) FROM catalogue_vouchercode
             WHERE order_id = sale.id AND id BETWEEN %(first)s AND %(last)s) AS codes,
           sale.quantity
      FROM (SELECT item.*
              FROM (SELECT DISTINCT order_id
                      FROM (SELECT order_id FROM catalogue_vouchercode
                             WHERE id BETWEEN %(first)s AND %(last)s AND order_id IS NOT NULL
                             ORDER BY id LIMIT %(codes)s) AS code) AS bought
             CROSS JOIN LATERAL (SELECT * FROM orders_order
                                  WHERE id = bought.order_id OFFSET 0) AS item
            OFFSET 0) AS sale
      JOIN accounts_apiclient AS client ON client.id = sale.client_id
      LEFT JOIN accounts_account AS account ON account.id = client.account_id
     ORDER BY account.id, sale.id
"""


def orders_of_batch(batch: Batch, *, codes: int | None = None) -> Iterator[dict[str, Any]]:
    """The orders that have codes of the batch, by account, oldest first; only those with the first
    `codes` that were sold, if a number is given.

    `codes` of an order is how many of its `quantity` codes are of the batch.
    """
    values = {"first": batch.first_code, "last": batch.last_code, "codes": codes}
    with connection.cursor() as cursor:
        cursor.execute(ORDERS, values)
        columns = [column.name for column in cursor.description]
        while rows := cursor.fetchmany(1000):
            yield from (dict(zip(columns, row, strict=True)) for row in rows)
