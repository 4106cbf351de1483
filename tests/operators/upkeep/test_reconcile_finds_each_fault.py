"""Each clause of a check of `reconcile` finds a fault that no other clause of it finds."""

from collections.abc import Callable

import pytest
from django.db import connection

from audit.models import AuditAction
from audit.services import record_action
from operators.telegram.models import Announcement
from operators.upkeep.reconcile import reconcile
from tests.concurrency.racing import without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    move_now,
)
from tests.operators.upkeep.damage import damaged
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("alone")]

DEBIT = "each order has its one debit"
CODES = "each voucher order has exactly its codes, from its shelf"
NUMBERS = "a client's orders are numbered without gaps"
STAMP = "a stamped record names an order of its client"
AGREES = "each top-up order agrees with its fulfilment"
LEADS = "the history of a fulfilment leads to its status"
GIVEN_UP = "each given-up announcement has an audit entry"
GUARDS = "every trigger, constraint and index exists and is active"

VOUCHER = "(SELECT min(id) FROM orders_order WHERE shelf_id IS NOT NULL)"
TOP_UP = "(SELECT min(id) FROM orders_order WHERE fulfilment_id IS NOT NULL)"
UNSOLD_ELSEWHERE = (
    "(SELECT max(id) FROM catalogue_vouchercode WHERE order_id IS NULL AND shelf_id NOT IN"
    " (SELECT shelf_id FROM orders_order WHERE shelf_id IS NOT NULL))"
)

# Damage, and the check that finds it. Each leaves the rest of the checked rows as they should be.
DAMAGE = {
    "a debit of another amount": (
        DEBIT,
        "UPDATE wallets_ledgerentry SET amount = amount - 1 WHERE kind = 'purchase'",
    ),
    "a debit by another client": (
        DEBIT,
        "UPDATE wallets_ledgerentry SET actor = 'client:0' WHERE kind = 'purchase'",
    ),
    "a debit of another wallet": (
        DEBIT,
        "UPDATE wallets_ledgerentry SET wallet_id = (SELECT max(account_id) FROM wallets_wallet)"
        " WHERE kind = 'purchase'",
    ),
    "an order without a debit": (
        DEBIT,
        "DELETE FROM wallets_ledgerentry WHERE kind = 'purchase'",
    ),
    "a replacement whose debit names another case": (
        DEBIT,
        "UPDATE orders_order SET case_id = -1, unit_price = 0, total_price = 0"
        " WHERE shelf_id IS NOT NULL AND quantity = 1;"
        " UPDATE wallets_ledgerentry SET kind = 'replacement', amount = 0,"
        " booking_reference = 'replacement-of-case:-2' WHERE order_reference ="
        " (SELECT reference FROM orders_order WHERE case_id = -1)",
    ),
    "a code too few": (
        CODES,
        "UPDATE catalogue_vouchercode SET order_id = NULL WHERE id ="
        f" (SELECT min(id) FROM catalogue_vouchercode WHERE order_id = {VOUCHER})",
    ),
    "a code of another shelf": (
        CODES,
        "UPDATE catalogue_vouchercode SET order_id = NULL WHERE id ="
        f" (SELECT min(id) FROM catalogue_vouchercode WHERE order_id = {VOUCHER});"
        f" UPDATE catalogue_vouchercode SET order_id = {VOUCHER} WHERE id = {UNSOLD_ELSEWHERE}",
    ),
    "a code of another shelf too many": (
        CODES,
        f"UPDATE catalogue_vouchercode SET order_id = {VOUCHER} WHERE id = {UNSOLD_ELSEWHERE}",
    ),
    "a top-up order with a code": (
        CODES,
        f"UPDATE catalogue_vouchercode SET order_id = {TOP_UP} WHERE id = {UNSOLD_ELSEWHERE}",
    ),
    "a number left out": (
        NUMBERS,
        "UPDATE orders_order SET number = number + 100 WHERE number ="
        " (SELECT max(number) FROM orders_order);"
        " UPDATE orders_clientcounter SET orders = orders",
    ),
    "a client without a counter": (NUMBERS, "DELETE FROM orders_clientcounter"),
    "a counter without orders": (
        NUMBERS,
        "INSERT INTO orders_clientcounter (client_id, orders)"
        " SELECT id, 3 FROM accounts_apiclient"
        " WHERE id NOT IN (SELECT client_id FROM orders_order)",
    ),
    "a record of another client": (
        STAMP,
        "UPDATE idempotency_idempotencyrecord SET client_id ="
        " (SELECT max(id) FROM accounts_apiclient)",
    ),
    "a record of no order": (
        STAMP,
        "UPDATE idempotency_idempotencyrecord SET order_reference = 'X'",
    ),
    "an order under another reference than its fulfilment": (
        AGREES,
        "UPDATE topups_fulfilment SET order_reference = 'X' || id",
    ),
    "an order at another price than its fulfilment": (
        AGREES,
        "UPDATE topups_fulfilment SET amount = amount + 1",
    ),
    "an order in another currency than its fulfilment": (
        AGREES,
        "UPDATE topups_fulfilment SET currency = 'EUR'",
    ),
    "an order of another account than its fulfilment": (
        AGREES,
        "UPDATE topups_fulfilment SET account_id = (SELECT max(id) FROM accounts_account)",
    ),
    "a fulfilment without an order": (
        AGREES,
        f"DELETE FROM orders_order WHERE id = {TOP_UP}",
    ),
    "an order without its fulfilment": (
        AGREES,
        "DELETE FROM topups_fulfilment",
    ),
    "a history that ends elsewhere": (
        LEADS,
        "UPDATE topups_fulfilmentevent SET to_status = 'failed' WHERE move = 'complete'",
    ),
    "no history": (LEADS, "DELETE FROM topups_fulfilmentevent"),
    "a history with a step from nowhere": (
        LEADS,
        "UPDATE topups_fulfilmentevent SET from_status = 'pending_review' WHERE move = 'complete'",
    ),
}
# Damage to the schema, what repairs it, and a part of the sentence.
SCHEMA = {
    "a trigger is off": (
        "ALTER TABLE orders_order DISABLE TRIGGER orders_order_is_a_record",
        "ALTER TABLE orders_order ENABLE TRIGGER orders_order_is_a_record",
        "trigger orders_order_is_a_record on orders_order is switched off",
    ),
    "a trigger runs only on replicas": (
        "ALTER TABLE orders_order ENABLE REPLICA TRIGGER orders_order_is_a_record",
        "ALTER TABLE orders_order ENABLE TRIGGER orders_order_is_a_record",
        "trigger orders_order_is_a_record on orders_order is switched off",
    ),
    "a trigger is missing": (
        "ALTER TRIGGER orders_order_is_a_record ON orders_order RENAME TO renamed",
        "ALTER TRIGGER renamed ON orders_order RENAME TO orders_order_is_a_record",
        "trigger orders_order_is_a_record is missing",
    ),
    "a constraint is not validated": (
        "ALTER TABLE wallets_wallet ADD CONSTRAINT later CHECK (balance < 1e12) NOT VALID",
        "ALTER TABLE wallets_wallet DROP CONSTRAINT later",
        "constraint later on wallets_wallet is not validated",
    ),
    "an index is not valid": (
        "UPDATE pg_index SET indisvalid = false"
        " WHERE indexrelid = 'wallets_entry_of_wallet'::regclass",
        "UPDATE pg_index SET indisvalid = true"
        " WHERE indexrelid = 'wallets_entry_of_wallet'::regclass",
        "index wallets_entry_of_wallet is not valid",
    ),
    "a partial unique index is missing": (
        "ALTER INDEX wallets_entry_once_per_order RENAME TO renamed",
        "ALTER INDEX renamed RENAME TO wallets_entry_once_per_order",
        "constraint wallets_entry_once_per_order is missing",
    ),
    "a unique index became partial": (
        "ALTER TABLE orders_order DROP CONSTRAINT orders_order_reference_key;"
        " CREATE UNIQUE INDEX partial ON orders_order (reference) WHERE id > 0",
        "DROP INDEX partial; ALTER TABLE orders_order"
        " ADD CONSTRAINT orders_order_reference_key UNIQUE (reference)",
        "orders_order.reference has no unique index",
    ),
    "an index is no longer unique": (
        "ALTER TABLE orders_order DROP CONSTRAINT orders_order_reference_key;"
        " CREATE INDEX plain ON orders_order (reference)",
        "DROP INDEX plain; ALTER TABLE orders_order"
        " ADD CONSTRAINT orders_order_reference_key UNIQUE (reference)",
        "orders_order.reference has no unique index",
    ),
    "a unique index has one column more": (
        "ALTER TABLE orders_order DROP CONSTRAINT orders_order_reference_key;"
        " CREATE UNIQUE INDEX wider ON orders_order (reference, id)",
        "DROP INDEX wider; ALTER TABLE orders_order"
        " ADD CONSTRAINT orders_order_reference_key UNIQUE (reference)",
        "orders_order.reference has no unique index",
    ),
}


@pytest.fixture
def busy() -> Merchant:
    """A merchant who bought codes and a top-up, beside a merchant who bought nothing."""
    merchant, product = make_merchant(), make_product(codes=5)
    for quantity in (2, 1):
        assert merchant.buy(product_id=product.pk, quantity=quantity).status_code == 201
    move_now(reference=buy_topup(merchant), move=Move.COMPLETE, operator=make_operator())
    make_product(codes=2)
    make_merchant()
    return merchant


def found() -> dict[str, str]:
    """The last finding of each check."""
    return {one["check"]: one["finding"] for one in reconcile()["findings"]}


def test_each_fault_is_found(busy: Merchant, subtests: pytest.Subtests) -> None:
    assert found() == {}

    for damage, (check, statement) in DAMAGE.items():
        with subtests.test(damage), damaged(statement):
            assert check in found()


def test_each_fault_of_the_schema_is_found(busy: Merchant, subtests: pytest.Subtests) -> None:
    for damage, (statement, repair, sentence) in SCHEMA.items():
        with subtests.test(damage), damaged(statement):
            assert reconcile()["findings"] == [{"check": GUARDS, "finding": sentence}]

            without_triggers(repair)
            assert found() == {}


def test_a_negative_balance_is_found(busy: Merchant) -> None:
    """Also if the ledger agrees with it."""
    name = "wallets_wallet_balance_not_negative"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name]
        )
        (rule,) = cursor.fetchone()
    without_triggers(f"ALTER TABLE wallets_wallet DROP CONSTRAINT {name}")
    try:
        without_triggers("UPDATE wallets_wallet SET balance = balance - 1000")
        without_triggers(
            "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after,"
            " actor, chain, booking_reference)"
            " SELECT account_id, 'adjustment', 'corrections', -1000, 0, 'x', '',"
            " 'booking ' || account_id FROM wallets_wallet"
        )
        findings = found()
    finally:
        without_triggers("UPDATE wallets_wallet SET balance = 0")
        without_triggers(f"ALTER TABLE wallets_wallet ADD CONSTRAINT {name} {rule}")

    assert "a balance is the sum of its entries" in findings


ENTRIES: dict[str, Callable[[Announcement], object]] = {
    "of another action": lambda row: record_action(
        actor=None, action=AuditAction.ANNOUNCEMENT_RESUMED, on=row
    ),
    "of another announcement": lambda row: record_action(
        actor=None, action=AuditAction.ANNOUNCEMENT_GIVEN_UP, on=Announcement(pk=row.pk + 1)
    ),
    "of another kind of row": lambda row: record_action(
        actor=None, action=AuditAction.ANNOUNCEMENT_GIVEN_UP, on=Fulfilment(pk=row.pk)
    ),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_only_its_own_audit_entry_explains_why_an_announcement_was_given_up(
    busy: Merchant, entry: Callable[[Announcement], object]
) -> None:
    row = Announcement.objects.create(fulfilment=Fulfilment.objects.get(), state="given_up")
    entry(row)
    assert GIVEN_UP in found()

    record_action(actor=None, action=AuditAction.ANNOUNCEMENT_GIVEN_UP, on=row)

    assert GIVEN_UP not in found()


def test_control_a_second_client_of_the_account_is_no_fault(busy: Merchant) -> None:
    sibling = Merchant(make_client(busy.client.account))
    assert sibling.buy(product_id=make_product(codes=1).pk, quantity=1).status_code == 201

    assert found() == {}
