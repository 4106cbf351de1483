"""The database refuses every statement that would break a rule, from any connection."""

import re
from typing import Any

import pytest
from django.db import Error, connection, transaction

from accounts.models import ApiClient
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import execute, rows
from tests.factories import (
    Merchant,
    make_account,
    make_merchant,
    make_product,
    make_variation,
)

SIGN = "agrees_with_its_kind"
ENTRY = (
    "INSERT INTO wallets_ledgerentry"
    " (wallet_id, kind, counterpart, amount, balance_after, actor, order_reference,"
    " booking_reference)"
)
NEW_KEY = "INSERT INTO core_encryptionkey VALUES (255, ''"


class World:
    """One merchant with two orders, and the ids that the statements below use."""

    def __init__(self) -> None:
        self.merchant: Merchant = make_merchant(balance="100.00")
        self.product = make_product(price="9.99", codes=3)
        self.other_product = make_product(price="9.99", codes=1)
        answers = [self.merchant.buy(product_id=self.product.pk, quantity=1) for _ in range(2)]
        self.reference, self.other_reference = (
            answer.json()["data"]["reference"] for answer in answers
        )
        by_reference = dict(rows("SELECT reference, id FROM orders_order"))
        client: ApiClient = self.merchant.client
        ((record, attempt),) = rows(
            "SELECT id, attempt FROM idempotency_idempotencyrecord WHERE order_reference = %s",
            self.reference,
        )
        self.names: dict[str, Any] = {
            "account": client.account_id,
            "client": client.pk,
            "poor": make_account(balance="0").pk,
            "reference": self.reference,
            "order": by_reference[self.reference],
            "other_order": by_reference[self.other_reference],
            "record": record,
            "attempt": attempt,
            "product": self.product.pk,
            "other_product": self.other_product.pk,
            "variation": make_variation(self.product).pk,
        }
        execute("SET CONSTRAINTS ALL IMMEDIATE")  # runs the checks of a commit now


@pytest.fixture
def world(db: None) -> World:
    return World()


# Statement: a part of the error message that refuses it.
REFUSED = {
    # A balance changes only by a ledger entry, and never below zero.
    "UPDATE wallets_wallet SET balance = balance + 1": "changes only by",
    "UPDATE wallets_wallet SET balance = -1": "changes only by",
    "UPDATE wallets_wallet SET chain = NULL": "changes only by",
    "INSERT INTO wallets_wallet (account_id, balance, chain) VALUES (-1, 0, '')": "changes only by",
    "INSERT INTO wallets_wallet (account_id, balance) VALUES (-1, 5)": "changes only by",
    "UPDATE wallets_wallet SET account_id = %(poor)s WHERE account_id = %(account)s": "wallet",
    "INSERT INTO wallets_wallet (account_id, balance) SELECT id, 5 FROM accounts_account"
    " ON CONFLICT (account_id) DO UPDATE SET balance = 5": "changes only by",
    "DELETE FROM wallets_wallet WHERE account_id = %(account)s": "foreign key",
    "TRUNCATE wallets_wallet CASCADE": "append-only",
    f"{ENTRY} VALUES"
    " (%(account)s, 'adjustment', 'corrections', -1000, 0, 'x', NULL, 'b')": "insufficient_balance",
    f"{ENTRY} VALUES"
    " (%(poor)s, 'purchase', 'sales', -0.01, 0, 'x', 'R', NULL)": "insufficient_balance",
    f"{ENTRY} VALUES (%(account)s, 'purchase', 'sales', 5, 0, 'x', 'R', NULL)": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'refund', 'sales', -5, 0, 'x', 'R', NULL)": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'deposit', 'bank', 'NaN', 0, 'x', NULL, 'b')": "is not a number",
    "UPDATE accounts_account SET currency = 'EUR' WHERE id = %(account)s": "never changes",
    # Ledger entries and orders never change.
    "UPDATE wallets_ledgerentry SET amount = amount + 1": "append-only",
    "UPDATE wallets_ledgerentry SET note = 'x' WHERE false": "append-only",
    "DELETE FROM wallets_ledgerentry": "append-only",
    "TRUNCATE wallets_ledgerentry": "referenced in a foreign key",
    "TRUNCATE wallets_ledgerentry CASCADE": "append-only",
    "MERGE INTO wallets_ledgerentry e USING wallets_wallet w ON e.wallet_id = w.account_id"
    " WHEN MATCHED THEN UPDATE SET amount = 0": "append-only",
    "UPDATE orders_order SET total_price = 0": "never changed or deleted",
    "DELETE FROM orders_order": "never changed or deleted",
    "TRUNCATE orders_order CASCADE": "never changed or deleted",
    # What somebody did stays in the audit trail.
    "UPDATE audit_auditentry SET note = 'x' WHERE false": "append-only",
    "TRUNCATE audit_auditentry": "append-only",
    # One debit and one refund per order.
    f"{ENTRY} VALUES"
    " (%(account)s, 'purchase', 'sales', -1, 0, 'x', %(reference)s, NULL)": "once_per_order",
    f"{ENTRY} SELECT %(account)s, 'refund', 'sales', 9.99, 0, 'x', %(reference)s, NULL"
    " FROM generate_series(1, 2)": "once_per_order",
    # Refunds and credits are at most what this wallet paid for the order.
    f"{ENTRY} VALUES (%(account)s, 'credit', 'sales', 9.9901, 0, 'x', %(reference)s,"
    " 'b')": "more_than_paid",
    f"{ENTRY} SELECT %(account)s, 'credit', 'sales', 5, 0, 'x', %(reference)s, n"
    " FROM generate_series(1, 2) n": "more_than_paid",
    f"{ENTRY} VALUES (%(account)s, 'refund', 'sales', 9.99, 0, 'x', %(reference)s, NULL),"
    " (%(account)s, 'credit', 'sales', 0.0001, 0, 'x', %(reference)s, 'b')": "more_than_paid",
    f"{ENTRY} VALUES (%(account)s, 'refund', 'sales', 10, 0, 'x', %(reference)s,"
    " NULL)": "more_than_paid",
    f"{ENTRY} VALUES (%(poor)s, 'credit', 'sales', 1, 0, 'x', %(reference)s,"
    " 'b')": "not_paid_by_wallet",
    f"{ENTRY} VALUES (%(account)s, 'credit', 'sales', 1, 0, 'x', 'NO SUCH ORDER',"
    " 'b')": "not_paid_by_wallet",
    f"{ENTRY} VALUES (%(account)s, 'credit', 'sales', -1, 0, 'x', %(reference)s, 'b')": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'credit', 'sales', 1, 0, 'x', NULL, 'b')": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'payout', 'bank', 1, 0, 'x', NULL, 'b')": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'payout', 'bank', -1, 0, 'x', %(reference)s, 'b')": SIGN,
    f"{ENTRY} VALUES (%(account)s, 'adjustment', 'corrections', 1, 0, 'x', %(reference)s,"
    " 'b')": SIGN,
    # Every booking has a reference of its own, in the whole ledger.
    f"{ENTRY} VALUES (%(account)s, 'deposit', 'bank', 1, 0, 'x', NULL,"
    " NULL)": "booking_reference_is_known",
    f"{ENTRY} VALUES (%(account)s, 'payout', 'bank', -1, 0, 'x', NULL,"
    " '')": "booking_reference_is_known",
    f"{ENTRY} VALUES (%(account)s, 'credit', 'sales', 1, 0, 'x', %(reference)s,"
    " NULL)": "booking_reference_is_known",
    f"{ENTRY} VALUES (%(account)s, 'purchase', 'sales', -1, 0, 'x', %(reference)s,"
    " 'b')": "booking_reference_is_known",
    f"{ENTRY} VALUES (%(account)s, 'deposit', 'bank', 1, 0, 'x', NULL, 'b'),"
    " (%(poor)s, 'deposit', 'bank', 1, 0, 'x', NULL, 'b')": "once_per_booking",
    # Nobody chooses the time of an entry.
    f"{ENTRY[:-1]}, created_at) VALUES (%(account)s, 'deposit', 'bank', 1, 0, 'x', NULL, 'b',"
    " now() - interval '1 day')": "chooses the time",
    "INSERT INTO audit_auditentry (action, object_type, object_id, changes, created_at)"
    " VALUES ('changed', 'x', 'x', '{}', now() - interval '1 day')": "chooses the time",
    # A code that was sold stays with its order.
    "UPDATE catalogue_vouchercode SET order_id = %(other_order)s"
    " WHERE order_id = %(order)s": "already sold",
    "UPDATE catalogue_vouchercode SET order_id = NULL WHERE order_id = %(order)s": "already sold",
    "UPDATE catalogue_vouchercode SET order_id = 0 WHERE order_id IS NULL": "foreign key",
    "UPDATE catalogue_vouchercode SET shelf_id ="
    " (SELECT id FROM catalogue_shelf WHERE product_id = %(other_product)s)"
    " WHERE order_id = %(order)s": "already sold",
    "DELETE FROM catalogue_vouchercode WHERE order_id = %(order)s": "already sold",
    "TRUNCATE catalogue_vouchercode CASCADE": "sold",
    # Only another key that seals seals a code again. 254 is no key, and 255 one that may seal.
    "UPDATE catalogue_vouchercode SET digest = 'same'": "keeps its content",
    "UPDATE catalogue_vouchercode SET id = id + 1000 WHERE order_id IS NULL": "keeps its content",
    # The digests of codes come and go with them.
    "INSERT INTO catalogue_codedigest VALUES (gen_random_uuid(), 1)": "come and go",
    "UPDATE catalogue_codedigest SET code_id = 1": "come and go",
    "DELETE FROM catalogue_codedigest": "come and go",
    "TRUNCATE catalogue_codedigest": "come and go",
    "UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 20, get_byte(sealed, 20) # 1)": (
        "keeps its content"
    ),
    f"{NEW_KEY}, NULL); UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 0, 255)": (
        "keeps its content"
    ),
    f"{NEW_KEY}, now()); UPDATE catalogue_vouchercode SET sealed = set_byte(sealed, 0, 254)": (
        "keeps its content"
    ),
    f"{NEW_KEY}, now()); UPDATE catalogue_vouchercode SET sealed = '\\xff'": "keeps its content",
    f"{NEW_KEY}, now()); UPDATE catalogue_vouchercode SET digest = 'new',"
    " sealed = set_byte(sealed, 0, 255) WHERE order_id = %(order)s": "keeps its content",
    "INSERT INTO catalogue_vouchercode (shelf_id, position, sealed, digest)"
    " SELECT shelf_id, position + 1000, sealed, digest FROM catalogue_vouchercode": "unique",
    "UPDATE catalogue_shelf SET available_stock = -1": "available_stock",
    "UPDATE catalogue_shelf SET product_id = %(other_product)s"
    " WHERE product_id = %(product)s": "never moves",
    "UPDATE catalogue_shelf SET variation_id = %(variation)s"
    " WHERE product_id = %(product)s AND variation_id IS NULL": "never moves",
    # One purchase per attempt.
    "SELECT orders_purchase_vouchers(%(record)s, %(attempt)s, 'SECOND', %(client)s, %(account)s,"
    " %(product)s, NULL, NULL, 1, '', '')": "attempt_lost",
    # The numbers, totals and keys of orders.
    "INSERT INTO orders_order (reference, client_id, number, quantity, units_per_sale, unit_price,"
    " total_price, currency, shelf_id, codes_mac)"
    " SELECT 'X', client_id, number, 1, 1, 1, 1, 'USD', shelf_id, ''"
    " FROM orders_order LIMIT 1": "orders_order_number",
    "INSERT INTO orders_order (reference, client_id, number, quantity, units_per_sale, unit_price,"
    " total_price, currency, shelf_id, codes_mac)"
    " SELECT 'X', client_id, 99, 2, 1, 1, 1, 'USD', shelf_id, ''"
    " FROM orders_order LIMIT 1": "total_is_exact",
    "INSERT INTO orders_order (reference, client_id, number, quantity, units_per_sale, unit_price,"
    " total_price, currency, shelf_id) SELECT 'X', client_id, 99, 1, 1, 1, 1, 'USD', shelf_id"
    " FROM orders_order LIMIT 1": "is_bound_to_its_codes",
    "UPDATE idempotency_idempotencyrecord SET order_reference = NULL, bought_at = NULL": (
        "success_has_an_order"
    ),
    "UPDATE idempotency_idempotencyrecord SET bought_at = NULL": "order_has_a_time",
}


def test_the_database_refuses_the_statement(world: World) -> None:
    not_refused = []
    for statement, reason in REFUSED.items():
        try:
            try_statement(statement, world.names)
        except Error as error:
            if re.search(reason, str(error)):
                continue
        not_refused.append(statement)
    assert not_refused == []
    assert_books_balance()


# What is no change to any of these rules.
ACCEPTED = (
    "UPDATE wallets_wallet SET balance = balance",
    "UPDATE accounts_account SET currency = currency",
    "UPDATE catalogue_vouchercode SET order_id = order_id, shelf_id = shelf_id",
    "UPDATE catalogue_shelf SET product_id = product_id, variation_id = variation_id",
)


def test_the_database_accepts_the_statement(world: World) -> None:
    for statement in ACCEPTED:
        try_statement(statement, world.names)
    assert_books_balance()


def try_statement(statement: str, names: dict[str, Any]) -> None:
    """Runs the statement and the checks of a commit."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, names)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_a_deposit_by_sql_moves_the_balance(world: World) -> None:
    """The trigger moves the balance for every entry and computes balance_after itself."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{ENTRY} VALUES (%s, 'deposit', 'bank', 5, 12345, 'x', NULL, 'b')",
            [world.names["account"]],
        )
    assert_books_balance()
    assert world.merchant.get("/balance").json()["data"]["balance"] == 85.02
