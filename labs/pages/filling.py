"""Fills a new database with orders of two years, and with all that belongs to them.

SQL writes the history straight into the tables, with triggers off, and in the state that purchases
would have left: `reconcile` finds nothing. 17 of 20 orders are of one code; three are top-ups,
completed or paid back.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

BATCH = 250_000


# Order n: account 1 makes every third order. Every account buys everything. The newest top-ups are
# open, and every fifteenth of the others failed. The refund of every twentieth of these is due.
SPREAD = {
    "client": "CASE WHEN n % 3 = 0 THEN 1 ELSE 2 + (n - n / 3 - 1) % 199 END",
    "number": "CASE WHEN n % 3 = 0 THEN n / 3 ELSE 1 + (n - n / 3 - 1) / 199 END",
    "goods": "1 + CASE WHEN n % 3 = 0 THEN n / 3 % 50"
    " ELSE ((n - n / 3 - 1) % 199 + abs(hashint8(n)) % 50) % 50 END",
    "status": "CASE WHEN n > {total} - 2000 THEN 'pending' WHEN n / 20 % 15 = 0 THEN 'failed'"
    " ELSE 'completed' END",
}
# Every twentieth order, and the two after it, is a top-up. Times are spread over two years.
FULFILMENTS = """
    INSERT INTO topups_fulfilment
        (id, order_reference, account_id, product_id, player_id, fields, amount, currency,
         takes_stock, status, failure_reason, created_at, closed_at, refund_due_at, refunded_at)
    SELECT n, reference, client, goods, 'player' || n,
           '[{"id":1,"name":"server","label":"Server","value":"eu","value_label":"EU"}]', 0.07,
           'USD', true, status, CASE WHEN status = 'failed' THEN 'fulfilment_failed' END, bought,
           CASE WHEN status <> 'pending' THEN ended END,
           CASE WHEN status = 'failed' THEN ended END,
           CASE WHEN status = 'failed' AND n / 300 %% 20 > 0 THEN ended END
      FROM history(%(first)s, %(last)s),
           LATERAL (SELECT bought + interval '9 minutes') AS time(ended)
     WHERE topup
"""
EVENTS = """
    INSERT INTO topups_fulfilmentevent
        (fulfilment_id, move, from_status, to_status, actor, channel, note, created_at)
    SELECT n, move, before, after, actor, channel, '', bought
      FROM history(%(first)s, %(last)s)
      JOIN (VALUES ('open', NULL, 'pending', 'client:1', 'api', '{pending,completed,failed}'),
                   ('claim', 'pending', 'processing', 'admin:anna', 'admin', '{completed,failed}'),
                   ('complete', 'processing', 'completed', 'admin:anna', 'admin', '{completed}'),
                   ('review', 'processing', 'pending_review', 'admin:anna', 'admin', '{failed}'),
                   ('reject', 'pending_review', 'failed', 'admin:anna', 'admin', '{failed}'),
                   ('refund', 'failed', 'failed', 'system', 'system', '{failed}'))
           AS moves(move, before, after, actor, channel, statuses)
        ON status = ANY (statuses::text[])
     WHERE topup AND (move <> 'refund' OR n / 300 %% 20 > 0)
"""
# The codes of a shelf follow each other, as after an import.
CODES = """
    INSERT INTO catalogue_vouchercode (shelf_id, position, sealed, digest, order_id, imported_at)
    SELECT goods, n, decode(repeat('01', 75), 'hex'), sha256(n::text::bytea), n, bought
      FROM history(%(first)s, %(last)s) WHERE NOT topup
     ORDER BY goods, n
"""
DIGESTS = """
    INSERT INTO catalogue_codedigest (digest, code_id)
    SELECT catalogue_half_digest(digest), id FROM catalogue_vouchercode ORDER BY 1
"""
ORDERS = """
    INSERT INTO orders_order
        (id, reference, client_id, number, shelf_id, fulfilment_id, quantity, units_per_sale,
         unit_price, total_price, currency, codes_mac, created_at)
    SELECT n, reference, client, number, CASE WHEN NOT topup THEN goods END,
           CASE WHEN topup THEN n END, 1, 1, 0.07, 0.07, 'USD',
           CASE WHEN NOT topup THEN sha256(reference::bytea) END, bought
      FROM history(%(first)s, %(last)s)
"""
ENTRIES = """
    INSERT INTO wallets_ledgerentry
        (id, wallet_id, kind, counterpart, amount, balance_after, order_reference, actor,
         created_at, chain)
    SELECT n + 10000, client, 'purchase', 'sales', -0.07, balance, reference, actor, bought,
           history_chain(
               wallet.chain, client, shown, balance, wallets_hidden_hash(NULL, actor, NULL, '')
           ) OVER (PARTITION BY client ORDER BY n)
      FROM (SELECT *, 1000000000 - 0.0700 * number AS balance, 'client:' || client AS actor,
                   wallets_shown_fields(client, 'purchase', 'sales', -0.0700, bought, reference, '')
                   AS shown
              FROM history(%(first)s, %(last)s)) AS entry
      JOIN (SELECT account_id, chain FROM wallets_wallet) AS wallet ON account_id = client
"""
WALLETS = """
    UPDATE wallets_wallet SET chain = last.chain
      FROM (SELECT DISTINCT ON (wallet_id) wallet_id, chain FROM wallets_ledgerentry
             WHERE id BETWEEN %(first)s + 10000 AND %(last)s + 10000
             ORDER BY wallet_id, id DESC) AS last
     WHERE account_id = last.wallet_id
"""
# The orders n of first..last of the whole history, with what several tables repeat.
HISTORY = """
    CREATE OR REPLACE FUNCTION history(first bigint, last bigint) RETURNS TABLE
        (n bigint, client bigint, number bigint, goods bigint, reference text, topup boolean,
         status text, bought timestamptz)
    LANGUAGE sql STABLE AS $$
        SELECT n, {client}, {number}, {goods},
               '01HISTORY' || lpad(upper(to_hex(n)), 17, '0'), n % 20 < 3, {status},
               now() - interval '730 days' * (1 - n::float8 / {total})
          FROM generate_series(first, last) AS n
    $$;
    -- Continues the chain of a wallet over the entries of a batch.
    CREATE OR REPLACE FUNCTION history_chained(
        chain bytea, start bytea, wallet bigint, shown text, balance numeric, hidden text
    ) RETURNS bytea LANGUAGE sql STABLE AS $$
        SELECT wallets_chained(coalesce(chain, start), wallet, shown, balance, hidden)
    $$;
    CREATE OR REPLACE AGGREGATE history_chain(bytea, bigint, text, numeric, text)
        (SFUNC = history_chained, STYPE = bytea)
"""
SUMS = """
    INSERT INTO orders_clientcounter (client_id, orders)
        SELECT client_id, count(*) FROM orders_order GROUP BY client_id
        ON CONFLICT (client_id) DO UPDATE SET orders = EXCLUDED.orders;
    UPDATE wallets_wallet SET balance = 1000000000 - 0.07 * orders
      FROM orders_clientcounter WHERE client_id = account_id;
    SELECT setval('orders_order_id_seq', (SELECT max(id) FROM orders_order)),
           setval('topups_fulfilment_id_seq', (SELECT max(id) FROM topups_fulfilment)),
           setval('wallets_ledgerentry_id_seq', (SELECT max(id) FROM wallets_ledgerentry));
"""
# What no foreign key needs, with the statements that drop and build it.
BUILT_LATER = """
    SELECT CASE WHEN k.oid IS NULL THEN format('DROP INDEX %I', i.relname)
                ELSE format('ALTER TABLE %I DROP CONSTRAINT %I', c.relname, k.conname) END,
           CASE WHEN k.oid IS NULL THEN pg_get_indexdef(i.oid)
                ELSE format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname,
                            pg_get_constraintdef(k.oid)) END
      FROM pg_index x JOIN pg_class i ON i.oid = indexrelid JOIN pg_class c ON c.oid = indrelid
      LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('u', 'x')
     WHERE c.relnamespace = 'public'::regnamespace AND NOT indisprimary
       AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.conindid = i.oid AND f.contype = 'f')
"""


@contextmanager
def built_later(connection: "psycopg.Connection[Any]") -> Iterator[None]:
    """Indexes are built after the block, in an order of magnitude less time than row by row."""
    found = connection.execute(BUILT_LATER).fetchall()
    for drop, _ in found:
        connection.execute(drop)
    yield
    connection.execute("SET maintenance_work_mem = '1GB'")
    for _, build in found:
        connection.execute(build)


def fill(connection: "psycopg.Connection[Any]", orders: int, *, more: Sequence[str]) -> None:
    """Writes this many orders, and all that belongs to them, into a database with merchants.

    `more` are statements for each batch besides; they may read `history`.
    """
    words = {name: text.format(total=orders) for name, text in SPREAD.items()}
    connection.execute("SET session_replication_role = replica")
    connection.execute("SET synchronous_commit = off")
    connection.execute(HISTORY.format(total=orders, **words))
    for first in range(1, orders + 1, BATCH):
        batch = {"first": first, "last": min(first + BATCH - 1, orders), "total": orders}
        for statement in (FULFILMENTS, EVENTS, CODES, ORDERS, ENTRIES, WALLETS, *more):
            connection.execute(statement, batch)
    connection.execute(DIGESTS)
    connection.execute(SUMS)
    connection.execute("RESET session_replication_role")


def say(kind: str, **facts: Any) -> None:
    print(json.dumps({"kind": kind, **facts}), flush=True)  # noqa: T201  the figures are the result
