"""The end of the run: what everybody was told, against the database, the logs and the cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from django.db import connection

from catalogue.stock.codes import code_digester
from operators.upkeep.reconcile import reconcile
from tests.concurrency.books import findings
from topups.fulfilment.transitions import Move

SHOWN = 5  # rows of each problem

TABLES = """
    DROP TABLE IF EXISTS pg_temp.given, pg_temp.given_code, pg_temp.ended, pg_temp.logged,
        pg_temp.unlogged;
    CREATE TEMPORARY TABLE given (
        kind text, client_id bigint, key text, outcome text, reference text, quantity integer,
        price numeric, ended double precision
    );
    CREATE TEMPORARY TABLE given_code (reference text, digest bytea);
    CREATE TEMPORARY TABLE ended (reference text, move text);
    CREATE TEMPORARY TABLE logged (reference text);
    CREATE TEMPORARY TABLE unlogged (began double precision, healed double precision)
"""
# Each problem, and a query that returns every case of it.
PROBLEMS = {
    "lost: an order that a merchant was given does not exist": """
        SELECT reference FROM given LEFT JOIN orders_order AS sale USING (reference, client_id)
         WHERE given.reference <> '' AND sale.id IS NULL""",
    "lost: an order has another quantity or price than the merchant was told": """
        SELECT reference FROM given JOIN orders_order AS sale USING (reference)
         WHERE sale.quantity <> given.quantity OR sale.total_price <> given.price""",
    "lost: a code that a merchant was given is not on the order": """
        SELECT given_code.reference FROM given_code
          LEFT JOIN catalogue_vouchercode AS code USING (digest)
          LEFT JOIN orders_order AS sale ON sale.id = code.order_id
         WHERE sale.reference IS DISTINCT FROM given_code.reference""",
    "lost: an order has more codes than the merchant was given": """
        SELECT sale.reference FROM orders_order AS sale
          LEFT JOIN (SELECT reference, count(*) AS number FROM given_code
                      GROUP BY reference) AS told USING (reference)
         WHERE sale.shelf_id IS NOT NULL AND coalesce(told.number, 0) <> sale.quantity""",
    "lost: a move that an operator was told of did not last": """
        SELECT ended.reference FROM ended WHERE NOT EXISTS (
            SELECT FROM topups_fulfilment AS fulfilment
              JOIN topups_fulfilmentevent AS event ON event.fulfilment_id = fulfilment.id
             WHERE fulfilment.order_reference = ended.reference AND event.move = ended.move)""",
    "lost: the log names a purchase that the database lacks": """
        SELECT reference FROM logged LEFT JOIN orders_order AS sale USING (reference)
         WHERE sale.id IS NULL""",
    "doubled: a code was given twice": """
        SELECT min(reference), max(reference) FROM given_code
         GROUP BY digest HAVING count(*) > 1""",
    "doubled: two keys name one order": """
        SELECT reference FROM given WHERE reference <> '' GROUP BY reference HAVING count(*) > 1""",
    "doubled: a key has two outcomes": """
        SELECT key FROM given GROUP BY client_id, key HAVING count(*) > 1""",
    "doubled: a top-up has not exactly one end": """
        SELECT fulfilment.order_reference FROM topups_fulfilment AS fulfilment
          LEFT JOIN topups_fulfilmentevent AS event
                 ON event.fulfilment_id = fulfilment.id AND event.move <> 'refund'
                AND event.to_status IN ('completed', 'failed')
         GROUP BY fulfilment.id HAVING count(event.id) <> 1""",
    "doubled: a rejected top-up has not exactly one refund, or another one has a refund": """
        SELECT fulfilment.order_reference FROM topups_fulfilment AS fulfilment
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.order_reference = fulfilment.order_reference AND entry.kind = 'refund'
         GROUP BY fulfilment.id
        HAVING count(entry.id) <> (fulfilment.refund_due_at IS NOT NULL)::integer
            OR coalesce(sum(entry.amount), fulfilment.amount) <> fulfilment.amount
            OR (fulfilment.refunded_at IS NULL) <> (fulfilment.refund_due_at IS NULL)""",
    "unreported: no merchant was told of an order": """
        SELECT reference FROM orders_order AS sale LEFT JOIN given USING (reference)
         WHERE given.key IS NULL""",
    "unreported: a merchant does not know the outcome": """
        SELECT client_id, key FROM given WHERE outcome NOT IN
            ('bought', 'replayed', 'request_abandoned', 'refused')""",
    "unreported: a key that was refused has an order": """
        SELECT given.client_id, given.key FROM given
          JOIN idempotency_idempotencyrecord AS record USING (client_id, key)
         WHERE given.outcome = 'refused' AND record.order_reference IS NOT NULL""",
    # A process that is killed between the commit and the line leaves no line; its purchase was not
    # answered either, so the outcome is not `bought`. On a full disk lines are lost.
    "unlogged: the purchase log lacks an order": """
        SELECT reference FROM given LEFT JOIN logged USING (reference)
         WHERE given.outcome = 'bought' AND logged.reference IS NULL AND NOT EXISTS (
            SELECT FROM unlogged WHERE given.ended BETWEEN began AND healed)""",
}


@dataclass(frozen=True)
class Told:
    """All answers: the merchants' files, the operators' moves, and the logs."""

    folder: Path
    ended: Mapping[str, Move]
    logged: set[str]
    full_disk: Sequence[tuple[float, float]]  # when log lines may be lost


def judge(told: Told) -> dict[str, list[str]]:
    """Every problem with its first cases; empty when all is as it was told."""
    problems: dict[str, list[str]] = {}
    _load(told)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        for problem, query in PROBLEMS.items():
            cursor.execute(query)
            if rows := cursor.fetchmany(SHOWN):
                problems[problem] = [" ".join(map(str, row)) for row in rows]
    for problem, found in findings().items():
        problems[f"books: {problem}"] = [str(row) for row in found[:SHOWN]]
    books = reconcile(decrypt=True)
    if books["findings"]:
        problems["reconcile"] = [str(finding) for finding in books["findings"][:SHOWN]]
    if wrong := (told.folder / "wrong.txt").read_text().splitlines():
        problems["an answer that the contract does not allow"] = wrong[:SHOWN]
    return problems


def counts() -> dict[str, Any]:
    """The data in the database, and the ends of the keys."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*) FILTER (WHERE shelf_id IS NOT NULL) AS voucher_orders,
                   count(*) FILTER (WHERE shelf_id IS NULL) AS top_up_orders,
                   (SELECT count(*) FROM given_code) AS codes_given,
                   (SELECT count(*) FROM wallets_ledgerentry WHERE kind = 'purchase') AS debits,
                   (SELECT count(*) FROM wallets_ledgerentry WHERE kind = 'refund') AS refunds,
                   (SELECT count(*) FROM given) AS keys,
                   (SELECT count(*) FROM logged) AS logged_purchases
              FROM orders_order"""
        )
        row: Any = cursor.fetchone()
        found = dict(zip([column.name for column in cursor.description], row, strict=True))
        cursor.execute("SELECT outcome, count(*) FROM given GROUP BY outcome ORDER BY outcome")
        return {**found, "outcomes": dict(cursor.fetchall())}


def leaks_in_cache(url: str, secrets: Mapping[str, str]) -> set[str]:
    """Which secrets are in a key or a value of the cache or the broker."""
    text = dump_cache(url)
    return {name for name, secret in secrets.items() if secret.encode() in text}


def dump_cache(url: str) -> bytes:
    """Every key of the cache (database 0) and of the broker (1) with its value."""
    found = []
    for number in (0, 1):
        with redis.Redis.from_url(f"{url[:-1]}{number}") as client:
            found += [key + b"\n" + _value(client, key) for key in client.scan_iter(count=1000)]
    return b"\n".join(found)


def _value(client: Any, key: bytes) -> bytes:
    """The value of a key of any type, as bytes."""
    kind = bytes(client.type(key)).decode()
    match kind:
        case "string":
            return bytes(client.get(key) or b"")
        case "list":
            return b"\n".join(client.lrange(key, 0, -1))
        case "hash":
            return b"\n".join(part for pair in client.hgetall(key).items() for part in pair)
        case "set":
            return b"\n".join(client.smembers(key))
        case "zset":
            return b"\n".join(client.zrange(key, 0, -1))
        case "none":  # it has expired meanwhile
            return b""
    raise ValueError(f"no way to read a {kind}")


def _load(told: Told) -> None:
    digest = code_digester()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        codes = []
        with (
            (told.folder / "given.tsv").open() as lines,
            cursor.copy("COPY given FROM STDIN") as to,
        ):
            for line in lines:
                *words, ended = line.rstrip("\n").split("\t")
                *known, price, given = words
                to.write_row((*known, price or None, ended))
                codes += [(known[4], code) for code in given.split(",") if code]
        with cursor.copy("COPY given_code FROM STDIN") as copy:
            for reference, code in codes:
                copy.write_row((reference, digest(code)))
        with cursor.copy("COPY ended FROM STDIN") as copy:
            for reference, move in told.ended.items():
                copy.write_row((reference, str(move.value)))
        with cursor.copy("COPY logged FROM STDIN") as copy:
            for reference in told.logged:
                copy.write_row((reference,))
        cursor.executemany("INSERT INTO unlogged VALUES (%s, %s)", told.full_disk)
        cursor.execute("ANALYZE given; ANALYZE given_code; ANALYZE logged; ANALYZE ended")
