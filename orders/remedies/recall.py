"""Recalls: the merchants that bought codes of a batch, and in which orders."""

from collections.abc import Iterator
from typing import Any

from django.db import connection

from catalogue.models import Batch

# The codes of a batch are a range of their primary keys. For a large batch, PostgreSQL may read all
# orders to join them.
ORDERS = """
    SELECT sale.id AS order_id, sale.reference, sale.created_at, account.id AS account_id,
           coalesce(account.name, '') AS account, client.name AS client, bought.codes, sale.quantity
      FROM (SELECT order_id, count(*) AS codes FROM catalogue_vouchercode
             WHERE id BETWEEN %s AND %s AND order_id IS NOT NULL GROUP BY order_id) AS bought
      JOIN orders_order AS sale ON sale.id = bought.order_id
      JOIN accounts_apiclient AS client ON client.id = sale.client_id
      LEFT JOIN accounts_account AS account ON account.id = client.account_id
     ORDER BY account.id, sale.id
"""


def orders_of_batch(batch: Batch, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """The orders that have codes of the batch, by account, oldest first; at most `limit`.

    `codes` is how many of the order's `quantity` codes are of the batch.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"{ORDERS} LIMIT %s",
            [batch.first_code, batch.last_code, limit],
        )
        columns = [column.name for column in cursor.description]
        while rows := cursor.fetchmany(1000):
            yield from (dict(zip(columns, row, strict=True)) for row in rows)
