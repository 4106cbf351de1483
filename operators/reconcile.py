"""`reconcile`: proves balances, stock, codes, orders, refunds and records against each other.

Each check is one query that returns a sentence per finding, so a healthy service returns nothing.
All of them read one snapshot, so sales may go on meanwhile.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from catalogue.codes import open_code
from config.database import sealing
from config.database.sealing import CannotOpen, Context

FINDINGS_SHOWN = 100  # of one check; the rest are counted


@dataclass(frozen=True)
class Check:
    """What is proven, and the query that finds where it does not hold: one text column.

    `parameters` makes those of the query; a query without any may write a plain `%`.
    """

    name: str
    sql: str
    parameters: Callable[[], dict[str, Any]] | None = None


TRIGGERS = [
    "accounts_currency_is_fixed",
    "catalogue_code_is_sold_once",
    "catalogue_codes_are_kept",
    "catalogue_price_history_is_append_only",
    "catalogue_price_history_is_kept",
    "catalogue_price_is_remembered",
    "catalogue_product_has_a_shelf",
    "catalogue_shelf_stays",
    "catalogue_sold_code_is_kept",
    "catalogue_variation_has_a_shelf",
    "merchants_members_are_not_staff",
    "merchants_staff_are_not_members",
    "audit_entry_is_append_only",
    "orders_order_is_a_record",
    "topups_ended_stays_ended",
    "topups_fulfilment_is_kept",
    "topups_history_is_append_only",
    "topups_price_history_is_append_only",
    "topups_price_history_is_kept",
    "topups_price_is_remembered",
    "wallets_balance_moves_by_ledger",
    "wallets_ledger_is_append_only",
    "wallets_post_entry",
    "wallets_wallet_starts_empty",
]
# Those that no model declares.
CONSTRAINTS = ["catalogue_shelf_variation_of_product", "catalogue_vouchercode_order_fk"]


def _guards() -> dict[str, Any]:
    """What the database must refuse by: the triggers of sql/, and all that the models declare."""
    models = apps.get_models()
    unique = [
        (model._meta.db_table, field.column)
        for model in models
        for field in model._meta.local_concrete_fields
        if field.unique
    ]
    return {
        "triggers": TRIGGERS,
        "constraints": [
            *CONSTRAINTS,
            *(constraint.name for model in models for constraint in model._meta.constraints),
        ],
        "tables": [table for table, _ in unique],
        "columns": [column for _, column in unique],
    }


CHECKS = [
    Check(
        "a balance is the sum of its entries",
        """
        SELECT format('wallet %s holds %s, its entries add up to %s',
                      account_id, balance, coalesce(total, 0))
          FROM wallets_wallet
          LEFT JOIN (SELECT wallet_id, sum(amount) AS total
                       FROM wallets_ledgerentry GROUP BY wallet_id) AS entries
                 ON wallet_id = account_id
         WHERE balance <> coalesce(total, 0) OR balance < 0
        """,
    ),
    Check(
        "each entry starts where the one before ended",
        """
        SELECT format('entry %s of wallet %s says %s, not %s', id, wallet_id, balance_after, due)
          FROM (SELECT id, wallet_id, balance_after,
                       sum(amount) OVER (PARTITION BY wallet_id ORDER BY id) AS due
                  FROM wallets_ledgerentry) AS replayed
         WHERE balance_after <> due
        """,
    ),
    Check(
        "each order has its one debit",
        """
        SELECT format('order %s of %s has a debit of %s on wallet %s by %s', sale.reference,
                      sale.total_price, entry.amount, entry.wallet_id, entry.actor)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.order_reference = sale.reference AND entry.kind = 'purchase'
         WHERE (entry.amount, entry.actor)
               IS DISTINCT FROM (-sale.total_price, 'client:' || sale.client_id)
            OR entry.wallet_id IS DISTINCT FROM client.account_id
        """,
    ),
    Check(
        "no order is debited or refunded twice",
        """
        SELECT format('order %s has %s entries of kind %s', order_reference, count(*), kind)
          FROM wallets_ledgerentry WHERE order_reference IS NOT NULL
         GROUP BY order_reference, kind HAVING count(*) > 1
        """,
    ),
    Check(
        "an order is in the currency of its wallet",
        """
        SELECT format('order %s is in %s, the wallet of account %s in %s',
                      reference, sale.currency, account.id, account.currency)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          JOIN accounts_account AS account ON account.id = client.account_id
         WHERE sale.currency <> account.currency
        """,
    ),
    Check(
        "each debit and each refund has its order",
        """
        SELECT format('entry %s names the order %s, which does not exist', id, order_reference)
          FROM wallets_ledgerentry AS entry
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE reference = entry.order_reference)
        """,
    ),
    Check(
        "a shelf counts the codes it holds",
        """
        SELECT format('shelf %s counts %s codes and holds %s',
                      shelf.id, available_stock, coalesce(unsold, 0))
          FROM catalogue_shelf AS shelf
          LEFT JOIN (SELECT shelf_id, count(*) AS unsold FROM catalogue_vouchercode
                      WHERE order_id IS NULL GROUP BY shelf_id) AS codes
                 ON shelf_id = shelf.id
         WHERE available_stock <> coalesce(unsold, 0)
        """,
    ),
    Check(
        "each voucher order has exactly its codes, from its shelf",
        """
        SELECT format('order %s of %s codes has %s, %s of them from its shelf',
                      reference, quantity, count(code.id),
                      count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id))
          FROM orders_order AS sale
          LEFT JOIN catalogue_vouchercode AS code ON code.order_id = sale.id
         GROUP BY sale.id
        HAVING count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id)
               <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
            OR count(code.id) <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
        """,
    ),
    Check(
        "each sold code has its order",
        """
        SELECT format('code %s is sold to order %s, which does not exist', id, order_id)
          FROM catalogue_vouchercode AS code
         WHERE order_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE id = code.order_id)
        """,
    ),
    Check(
        "a client's orders are numbered without gaps",
        """
        SELECT format('client %s has %s orders, the last is number %s, its counter says %s',
                      client_id, count, last, counter)
          FROM (SELECT coalesce(sale.client_id, counter.client_id) AS client_id,
                       count(sale.id) AS count, coalesce(max(number), 0) AS last,
                       coalesce(max(counter.orders), 0) AS counter
                  FROM orders_order AS sale
                  FULL JOIN orders_clientcounter AS counter ON counter.client_id = sale.client_id
                 GROUP BY 1) AS numbered
         WHERE count <> last OR count <> counter
        """,
    ),
    Check(
        "a stamped record names an order of its client",
        """
        SELECT format('record %s names the order %s, which its client did not buy',
                      record.id, record.order_reference)
          FROM idempotency_idempotencyrecord AS record
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order AS sale
                            WHERE sale.reference = record.order_reference
                              AND sale.client_id = record.client_id)
        """,
    ),
    Check(
        "each top-up order agrees with its fulfilment",
        """
        SELECT format('order %s and fulfilment %s disagree', sale.reference,
                      fulfilment.order_reference)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          FULL JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
         WHERE (sale.id IS NULL OR sale.shelf_id IS NULL)
           AND (sale.reference, sale.total_price, sale.currency, client.account_id)
               IS DISTINCT FROM (fulfilment.order_reference, fulfilment.amount,
                                 fulfilment.currency, fulfilment.account_id)
        """,
    ),
    Check(
        "a wallet is refunded exactly where its fulfilment says so",
        """
        SELECT format('fulfilment %s (%s, refunded %s) has a refund of %s on wallet %s',
                      fulfilment.order_reference, fulfilment.status,
                      fulfilment.refunded_at IS NOT NULL, entry.amount, entry.wallet_id)
          FROM topups_fulfilment AS fulfilment
          FULL JOIN (SELECT * FROM wallets_ledgerentry WHERE kind = 'refund') AS entry
                 ON entry.order_reference = fulfilment.order_reference
         WHERE (fulfilment.refunded_at IS NULL) <> (entry.id IS NULL)
            OR (entry.id IS NOT NULL
                AND (fulfilment.status, fulfilment.amount, fulfilment.account_id)
                    IS DISTINCT FROM ('failed', entry.amount, entry.wallet_id))
            OR (entry.id IS NOT NULL AND fulfilment.refund_due_at IS NULL)
        """,
    ),
    Check(
        "a refund was due because of a rejection, and its history has it once",
        """
        SELECT format('fulfilment %s (refund due %s, refunded %s) has %s rejections and %s refunds'
                      ' in its history', order_reference, refund_due_at IS NOT NULL,
                      refunded_at IS NOT NULL, coalesce(rejections, 0), coalesce(refunds, 0))
          FROM topups_fulfilment AS fulfilment
          LEFT JOIN (SELECT fulfilment_id, count(*) FILTER (WHERE move = 'reject') AS rejections,
                            count(*) FILTER (WHERE move = 'refund') AS refunds
                       FROM topups_fulfilmentevent GROUP BY fulfilment_id) AS history
                 ON fulfilment_id = fulfilment.id
         WHERE coalesce(rejections, 0) <> (refund_due_at IS NOT NULL)::int
            OR coalesce(refunds, 0) <> (refunded_at IS NOT NULL)::int
        """,
    ),
    Check(
        "a fulfilment's history leads to where it stands",
        """
        WITH steps AS (
            SELECT fulfilment_id, from_status, to_status,
                   lag(to_status) OVER history AS came_to,
                   row_number() OVER (PARTITION BY fulfilment_id ORDER BY id DESC) AS from_last
              FROM topups_fulfilmentevent
            WINDOW history AS (PARTITION BY fulfilment_id ORDER BY id)
        )
        SELECT format('fulfilment %s is %s, its history says otherwise', order_reference, status)
          FROM topups_fulfilment AS fulfilment
         WHERE NOT EXISTS (SELECT FROM steps WHERE fulfilment_id = fulfilment.id AND from_last = 1
                              AND to_status = fulfilment.status)
            OR EXISTS (SELECT FROM steps WHERE fulfilment_id = fulfilment.id
                          AND from_status IS DISTINCT FROM came_to)
        """,
    ),
    Check(
        "a message that shows the end is of an order that ended",
        """
        SELECT format('order %s is %s, its message in chat %s shows an end',
                      order_reference, fulfilment.status, chat_id)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'ended' AND fulfilment.status NOT IN ('completed', 'failed')
        """,
    ),
    Check(
        "what was given up in Telegram is in the audit trail",
        """
        SELECT format('the announcement of order %s was given up, and no audit entry says why',
                      order_reference)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up'
           AND NOT EXISTS (SELECT FROM audit_auditentry
                            WHERE object_type = 'operators.announcement'
                              AND object_id = announcement.id::text
                              AND action = 'announcement_given_up')
        """,
    ),
    Check(
        "the guards of the database are up",
        """
        SELECT format('trigger %%s on %%s is switched off', tgname, tgrelid::regclass)
          FROM pg_trigger
         WHERE tgenabled <> 'O' AND tgrelid IN (SELECT oid FROM pg_class
                                                 WHERE relnamespace = 'public'::regnamespace)
        UNION ALL
        SELECT format('trigger %%s is missing', wanted)
          FROM unnest(%(triggers)s::text[]) AS wanted
         WHERE NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = wanted)
        UNION ALL
        SELECT format('constraint %%s is missing', wanted)
          FROM unnest(%(constraints)s::text[]) AS wanted
         WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conname = wanted)
           AND NOT EXISTS (SELECT FROM pg_class WHERE relname = wanted AND relkind = 'i')
        UNION ALL
        SELECT format('nothing keeps %%s.%%s unique', wanted.table, wanted.column)
          FROM unnest(%(tables)s::text[], %(columns)s::text[]) AS wanted ("table", "column")
         WHERE NOT EXISTS (SELECT FROM pg_index AS index
                             JOIN pg_attribute AS attribute
                               ON attrelid = indrelid AND attnum = indkey[0]
                            WHERE indrelid = wanted.table::regclass AND attname = wanted.column
                              AND indisunique AND indnkeyatts = 1 AND indpred IS NULL)
        UNION ALL
        SELECT format('constraint %%s on %%s was never checked', conname, conrelid::regclass)
          FROM pg_constraint WHERE NOT convalidated
        UNION ALL
        SELECT format('index %%s is not valid', indexrelid::regclass)
          FROM pg_index WHERE NOT indisvalid
        """,
        _guards,
    ),
]

# What is late, but not wrong: it ends no command with 1.
WARNINGS = [
    Check(
        "a refund is carried out within minutes",
        """
        SELECT format('the refund of %%s (%%s %%s) is due since %%s',
                      order_reference, amount, currency, refund_due_at)
          FROM topups_fulfilment
         WHERE refund_due_at < now() - make_interval(mins => %(minutes)s) AND refunded_at IS NULL
         ORDER BY refund_due_at
        """,
        lambda: {"minutes": settings.REFUND_OVERDUE_MINUTES},
    ),
    Check(
        "orders that the operators' chat was to see are there",
        """
        SELECT format('order %s is not announced in Telegram: %s', order_reference, last_error)
          FROM operators_announcement AS announcement
          JOIN topups_fulfilment AS fulfilment ON fulfilment.id = announcement.fulfilment_id
         WHERE announcement.state = 'given_up' AND fulfilment.status = 'pending'
         ORDER BY fulfilment.created_at
        """,
    ),
]

COUNTED = {
    "wallets": "wallets_wallet",
    "ledger_entries": "wallets_ledgerentry",
    "orders": "orders_order",
    "codes": "catalogue_vouchercode",
    "shelves": "catalogue_shelf",
    "fulfilments": "topups_fulfilment",
    "idempotency_records": "idempotency_idempotencyrecord",
}


def _silent(name: str) -> None:
    """Reports to nobody."""


def reconcile(*, decrypt: bool = False, report: Callable[[str], None] = _silent) -> dict[str, Any]:
    """Runs every check over all data: `{"ok", "checked", "findings", "warnings"}`.

    `decrypt` opens all that is stored sealed as well. `report` is told the name of each check
    before it runs. Changes nothing.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET LOCAL statement_timeout = 0")
        checked = _count(cursor)
        findings: list[dict[str, str]] = []
        for check in CHECKS:
            report(check.name)
            findings += _run(cursor, check)
        if decrypt:
            for name, sentences in _find_unopenable(report):
                findings += _shown(name, sentences)
        warnings = [warning for check in WARNINGS for warning in _run(cursor, check)]
    return {"ok": not findings, "checked": checked, "findings": findings, "warnings": warnings}


def _count(cursor: CursorWrapper) -> dict[str, int]:
    counts = {}
    for name, table in COUNTED.items():
        cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  names of ours
        (counts[name],) = cursor.fetchone()
    return counts


def _run(cursor: CursorWrapper, check: Check) -> list[dict[str, str]]:
    cursor.execute(check.sql, check.parameters() if check.parameters else None)
    return _shown(check.name, (sentence for (sentence,) in cursor))


def _shown(name: str, sentences: Iterator[str]) -> list[dict[str, str]]:
    findings: list[dict[str, str]] = []
    more = 0
    for sentence in sentences:
        if len(findings) < FINDINGS_SHOWN:
            findings.append({"check": name, "finding": sentence})
        else:
            more += 1
    if more:
        findings.append({"check": name, "finding": f"and {more} more"})
    return findings


def _find_unopenable(report: Callable[[str], None]) -> Iterator[tuple[str, Iterator[str]]]:
    report("every stored code opens")
    yield (
        "every stored code opens",
        _unopenable("catalogue_vouchercode", "sealed", open_code),
    )
    report("every stored replay opens")
    yield (
        "every stored replay opens",
        _unopenable(
            "idempotency_idempotencyrecord",
            "response",
            lambda sealed: sealing.open_sealed(sealed, Context.REPLAY_BODY),
        ),
    )
    report("every stored secret opens")
    yield (
        "every stored secret opens",
        _unopenable(
            "catalogue_sealedsecret",
            "sealed",
            lambda sealed: sealing.open_sealed(sealed, Context.DIGEST_KEY),
        ),
    )


def _unopenable(table: str, column: str, open_it: Callable[[bytes], Any]) -> Iterator[str]:
    with connection.chunked_cursor() as cursor:
        cursor.execute(f"SELECT id, {column} FROM {table} WHERE {column} IS NOT NULL")  # noqa: S608  names of ours
        for pk, sealed in cursor:
            try:
                open_it(sealed)
            except (CannotOpen, ValueError, TypeError):
                yield f"{table} {pk} cannot be opened with the keys at hand"
