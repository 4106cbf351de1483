"""Checks in plain SQL of what must be true for all data at every moment.

The tests do not use the service's `reconcile`, so an error in it cannot hide an error in the data.
"""

from django.db import connection

# Each problem, and a query that returns every row with it.
FINDINGS = {
    "a balance is not the sum of its entries": """
        SELECT wallet.account_id, wallet.balance, sum(entry.amount)
          FROM wallets_wallet wallet
          LEFT JOIN wallets_ledgerentry entry ON entry.wallet_id = wallet.account_id
         GROUP BY wallet.account_id
        HAVING wallet.balance <> coalesce(sum(entry.amount), 0)""",
    "a balance is negative": "SELECT account_id FROM wallets_wallet WHERE balance < 0",
    "balance_after is not the running sum of a wallet's entries": """
        SELECT id, amount, balance_after, running FROM (
            SELECT id, amount, balance_after,
                   sum(amount) OVER (PARTITION BY wallet_id ORDER BY id) AS running
              FROM wallets_ledgerentry) entry
         WHERE balance_after <> running""",
    "an order without exactly one debit of its price": """
        SELECT sale.reference, sale.total_price, sum(entry.amount)
          FROM orders_order sale
          LEFT JOIN wallets_ledgerentry entry
                 ON entry.order_reference = sale.reference AND entry.kind = 'purchase'
         GROUP BY sale.id
        HAVING count(entry.id) <> 1 OR sum(entry.amount) <> -sale.total_price""",
    "a debit without an order of that account": """
        SELECT entry.id, entry.order_reference
          FROM wallets_ledgerentry entry
          LEFT JOIN orders_order sale ON sale.reference = entry.order_reference
          LEFT JOIN accounts_apiclient client ON client.id = sale.client_id
         WHERE entry.kind = 'purchase' AND client.account_id IS DISTINCT FROM entry.wallet_id""",
    "an order does not have its quantity of codes": """
        SELECT sale.reference, sale.quantity, count(code.id)
          FROM orders_order sale
          LEFT JOIN catalogue_vouchercode code
                 ON code.order_id = sale.id AND code.shelf_id = sale.shelf_id
         WHERE sale.shelf_id IS NOT NULL
         GROUP BY sale.id
        HAVING count(code.id) <> sale.quantity""",
    "available_stock is not the number of unsold codes": """
        SELECT shelf.id, shelf.available_stock, count(code.id)
          FROM catalogue_shelf shelf
          LEFT JOIN catalogue_vouchercode code
                 ON code.shelf_id = shelf.id AND code.order_id IS NULL
         GROUP BY shelf.id
        HAVING shelf.available_stock <> count(code.id)""",
    "the orders of a client are not numbered from 1 without gaps": """
        SELECT sale.client_id, count(*), min(number), max(number), max(counter.orders)
          FROM orders_order sale
          LEFT JOIN orders_clientcounter counter ON counter.client_id = sale.client_id
         GROUP BY sale.client_id
        HAVING min(number) <> 1 OR max(number) <> count(*)
            OR count(DISTINCT number) <> count(*)
            OR max(counter.orders) IS DISTINCT FROM count(*)""",
    "an order has several keys, or a key has a missing order": """
        SELECT record.order_reference, count(*)
          FROM idempotency_idempotencyrecord record
          LEFT JOIN orders_order sale ON sale.reference = record.order_reference
                                     AND sale.client_id = record.client_id
         WHERE record.order_reference IS NOT NULL
         GROUP BY record.order_reference
        HAVING count(*) > 1 OR count(sale.id) <> count(*)""",
}


def findings() -> dict[str, list[tuple[object, ...]]]:
    """The rows with a problem, by problem."""
    with connection.cursor() as cursor:
        found = {}
        for problem, query in FINDINGS.items():
            cursor.execute(query)
            if rows := cursor.fetchall():
                found[problem] = rows
        return found


def assert_books_balance() -> None:
    found = findings()
    assert not found, found
